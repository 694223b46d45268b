// Awaits programs for the talker, whose loop must not block: it polls their pipes beside ssh's.
#include "app/far/children.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

namespace stepladder::far {
namespace {

constexpr std::size_t most_output = 4 << 20;

}  // namespace

std::string Outcome::sentence(const std::string& program) const {
  if (!started) return errors;
  if (!in_time) return program + " did not answer in time.";
  const std::string said = (errors.empty() ? output : errors).substr(0, 2000);
  const std::size_t end = said.find_last_not_of(" \r\n\t");
  if (end != std::string::npos) return program + ": " + said.substr(0, end + 1);
  return program + " failed without a message.";
}

Children::Child& Children::add(std::chrono::seconds patience, Done done) {
  return children_.emplace_back(Child{.deadline = Clock::now() + patience, .done = std::move(done)});
}

Process Children::start(Child& child, Launch launch) {
  Pipe output;
  launch.output = output.write.get();
  Process process(launch);
  child.output = std::move(output.read);
  ::fcntl(child.output.get(), F_SETFL, O_NONBLOCK);
  child.outcome.started = true;
  return process;
}

void Children::start(const std::vector<std::string>& command, std::chrono::seconds patience, Done done) {
  Child& child = add(patience, std::move(done));
  try {
    Pipe errors;
    child.process.emplace(start(child, {.command = command, .errors = errors.write.get(), .dies_with_us = true}));
    child.errors = std::move(errors.read);
    ::fcntl(child.errors.get(), F_SETFL, O_NONBLOCK);
  } catch (const std::system_error& error) {
    child.outcome.errors = std::string(error.what()) + ".";
  }
}

void Children::start_self(const std::vector<std::string>& arguments, std::chrono::seconds patience, Done done) {
  Child& child = add(patience, std::move(done));
  std::vector<std::string> command = {"stepladder-far"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  try {
    outliving_.push_back(
        start(child, {.command = command, .program = "/proc/self/exe", .group = Launch::Group::session}));
    outliving_.back().leave_alone();
  } catch (const std::system_error& error) {
    child.outcome.errors = std::string(error.what()) + ".";
  }
}

void Children::add_to(std::vector<pollfd>& polled) const {
  for (const Child& child : children_)
    for (const Descriptor* const end : {&child.output, &child.errors})
      if (*end) polled.push_back({.fd = end->get(), .events = POLLIN, .revents = 0});
}

void Children::read_from(Descriptor& end, std::string& text) {
  char piece[16 * 1024];
  while (end) {
    const ssize_t count = ::read(end.get(), piece, sizeof piece);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) return end.reset();
    if (text.size() < most_output) text.append(piece, static_cast<std::size_t>(count));
  }
}

bool Children::has_ended(Child& child, Clock::time_point now) {
  Outcome& outcome = child.outcome;
  if (!outcome.started) return true;
  // Its end first: what it wrote before is in the pipes.
  const bool ended = child.process && child.process->has_ended();
  read_from(child.output, outcome.output);
  read_from(child.errors, outcome.errors);
  outcome.in_time = child.process ? ended : !child.output;
  if (outcome.in_time) outcome.status = child.process ? child.process->wait_status() : 0;
  if (outcome.in_time || now < child.deadline) return outcome.in_time;
  if (child.process) child.process->kill_group(SIGKILL);
  return true;
}

void Children::handle() {
  const auto now = Clock::now();
  outliving_.remove_if([](Process& process) { return process.has_ended(); });
  std::vector<Child> ended;
  for (Child& child : std::exchange(children_, {}))
    (has_ended(child, now) ? ended : children_).push_back(std::move(child));
  for (Child& child : ended) child.done(child.outcome);  // may start others
}

}  // namespace stepladder::far
