#include "app/far/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "app/far/wire.h"

namespace stepladder::far {
namespace {

constexpr std::size_t most_output = 4 << 20;

void default_signals() {
  for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// What a failed start tells through the pipe.
struct Failure {
  int error = 0;
  bool of_folder = false;
};

// Runs in the new process. `failure` is above 2 and closes when the program starts.
[[noreturn]] void execute(const Launch& launch, std::vector<char*>& arguments, int failure) {
  ::setpgid(0, 0);
  default_signals();
  if (launch.dies_with_us) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(launch.output >= 0 ? launch.output : nothing, STDOUT_FILENO);
  ::dup2(launch.errors >= 0 ? launch.errors : nothing, STDERR_FILENO);
  Failure why;
  why.of_folder = !launch.folder.empty() && ::chdir(launch.folder.c_str()) != 0;
  if (!why.of_folder) {
    for (const auto& [name, value] : launch.environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::execvp(arguments[0], arguments.data());
  }
  why.error = errno;
  [[maybe_unused]] const ssize_t written = ::write(failure, &why, sizeof why);
  ::_exit(127);
}

// A pipe whose ends are above 2, so that they survive what is put on 0 to 2.
void open_pipe(int (&ends)[2]) {
  if (::pipe2(ends, O_CLOEXEC) != 0) throw refused("A pipe", "cannot be opened", errno);
  for (int& end : ends) {
    if (end > STDERR_FILENO) continue;
    const int higher = ::fcntl(end, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    ::close(end);
    end = higher;
  }
}

}  // namespace

pid_t start(const Launch& launch) {
  std::vector<char*> arguments;
  for (const std::string& word : launch.command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int ends[2];
  open_pipe(ends);
  const pid_t pid = ::fork();
  if (pid == 0) execute(launch, arguments, ends[1]);
  const int error = errno;
  ::close(ends[1]);
  const Descriptor answer(ends[0]);
  if (pid < 0) throw refused("'" + launch.command[0] + "'", "cannot be started", error);
  Failure why;
  ssize_t count = 0;
  while ((count = ::read(answer.get(), &why, sizeof why)) < 0 && errno == EINTR) {
  }
  if (count != static_cast<ssize_t>(sizeof why)) return pid;
  ::waitpid(pid, nullptr, 0);
  throw why.of_folder ? refused(launch.folder, "cannot be entered", why.error)
                      : refused("'" + launch.command[0] + "'", "cannot be started", why.error);
}

void close_others() {
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, 3u, ~0u, 0u) == 0) return;
#endif
  const int limit = static_cast<int>(std::min(::sysconf(_SC_OPEN_MAX), 65'536l));
  for (int descriptor = 3; descriptor < limit; ++descriptor) ::close(descriptor);
}

std::string Outcome::sentence(const std::string& program) const {
  if (!started) return errors;
  if (!in_time) return program + " did not answer in time.";
  const std::string said = (errors.empty() ? output : errors).substr(0, 2000);
  const std::size_t end = said.find_last_not_of(" \r\n\t");
  if (end != std::string::npos) return program + ": " + said.substr(0, end + 1);
  return program + " failed without a message.";
}

void Children::start(const std::vector<std::string>& command, std::chrono::seconds patience, Done done) {
  Child child;
  child.deadline = Clock::now() + patience;
  child.done = std::move(done);
  try {
    int output[2], errors[2];
    open_pipe(output);
    child.output = Descriptor(output[0]);
    const Descriptor theirs(output[1]);
    open_pipe(errors);
    child.errors = Descriptor(errors[0]);
    const Descriptor their_errors(errors[1]);
    child.pid = far::start({.command = command, .output = output[1], .errors = errors[1], .dies_with_us = true});
    child.outcome.started = true;
    for (const int end : {output[0], errors[0]}) ::fcntl(end, F_SETFL, O_NONBLOCK);
  } catch (const Refusal& refusal) {
    child.output.reset();
    child.errors.reset();
    child.outcome.errors = refusal.what();
  }
  children_.push_back(std::move(child));
}

void Children::await(Descriptor pipe, std::chrono::seconds patience, Done done) {
  Child child;
  child.deadline = Clock::now() + patience;
  child.done = std::move(done);
  child.output = std::move(pipe);
  ::fcntl(child.output.get(), F_SETFL, O_NONBLOCK);
  child.outcome.started = true;
  children_.push_back(std::move(child));
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
  if (!child.outcome.started) return true;
  read_from(child.output, child.outcome.output);
  read_from(child.errors, child.outcome.errors);
  const bool closed = !child.output && !child.errors;
  if (child.pid == 0) {
    child.outcome.in_time = closed;
    child.outcome.status = 0;
    return closed || now >= child.deadline;
  }
  const bool reaped = ::waitpid(child.pid, &child.outcome.status, WNOHANG) == child.pid;
  if (reaped) {
    read_from(child.output, child.outcome.output);
    read_from(child.errors, child.outcome.errors);
    child.outcome.in_time = true;
    return true;
  }
  if (now < child.deadline) return false;
  ::kill(-child.pid, SIGKILL);
  ::waitpid(child.pid, nullptr, 0);
  return true;
}

void Children::handle() {
  const auto now = Clock::now();
  std::vector<Child> ended;
  for (std::size_t i = 0; i < children_.size();) {
    if (has_ended(children_[i], now)) {
      ended.push_back(std::move(children_[i]));
      children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  for (Child& child : ended) child.done(child.outcome);  // may start others
}

}  // namespace stepladder::far
