// Awaits programs for the talker, whose loop must not block.
#include "app/far/children.h"

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

void Children::start(const std::vector<std::string>& command, std::chrono::seconds patience, Done done) {
  start({.command = command}, false, patience, std::move(done));
}

void Children::start_self(const std::vector<std::string>& arguments, std::chrono::seconds patience, Done done) {
  Launch launch{.command = arguments, .program = "/proc/self/exe", .group = Launch::Group::session};
  launch.command.insert(launch.command.begin(), "stepladder-far");
  start(launch, true, patience, std::move(done));
}

void Children::start(const Launch& launch, bool outlives_us, std::chrono::seconds patience, Done done) {
  Child& child = children_.emplace_back();
  child.outlives_us = outlives_us;
  child.deadline = Clock::now() + patience;
  child.done = std::move(done);
  try {
    child.program.emplace(launch);
    if (outlives_us) child.program->process().leave_alone();
    child.outcome.started = true;
  } catch (const std::system_error& error) {
    child.outcome.errors = std::string(error.what()) + ".";
  }
}

bool Children::is_done(Child& child, Clock::time_point now) {
  Outcome& outcome = child.outcome;
  if (!outcome.started) return true;
  Process& process = child.program->process();
  outcome.in_time = process.has_ended();
  if (outcome.in_time) outcome.status = process.wait_status();
  if (outcome.in_time || child.outlives_us) outcome.output = child.program->output(most_output);
  if (child.outlives_us && outcome.output.ends_with('\n')) outcome.in_time = true;
  if (!outcome.in_time && now < child.deadline) return false;
  outcome.errors = child.program->errors(most_output);
  if (!child.outlives_us)
    process.kill_group(SIGKILL);
  else
    outliving_.push_back(std::move(process));
  return true;
}

void Children::add_to(std::vector<pollfd>& polled) const {
  for (const Child& child : children_)
    if (child.program) polled.push_back({.fd = child.program->process().handle(), .events = POLLIN, .revents = 0});
}

void Children::handle() {
  const auto now = Clock::now();
  outliving_.remove_if([](Process& process) { return process.has_ended(); });
  std::list<Child> done;
  for (auto child = children_.begin(); child != children_.end();) {
    const auto next = std::next(child);
    if (is_done(*child, now)) done.splice(done.end(), children_, child);
    child = next;
  }
  for (Child& child : done) child.done(child.outcome);  // may start others
}

}  // namespace stepladder::far
