#include "app/import/watched_program.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "app/exit_status.h"

namespace stepladder {
namespace {

constexpr int look_again_ms = 200;  // for a program that has ended while another process holds its output
constexpr int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

std::atomic<pid_t> program{0};  // gets the signals
std::atomic<int> unclaimed{0};

void pass_on(int signal) {
  const pid_t pid = program.load();
  if (pid > 0)
    ::kill(pid, signal);
  else
    ++unclaimed;
}

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

}  // namespace

void pass_signals_on() {
  struct sigaction action = {};
  action.sa_handler = pass_on;  // without SA_RESTART: a blocking read returns
  for (const int signal : passed_on) ::sigaction(signal, &action, nullptr);
}

int signals_without_program() {
  return unclaimed;
}

// [0] is ours, [1] the program's.
struct WatchedProgram::Ends {
  int out[2] = {-1, -1};
  int err[2] = {-1, -1};      // -1: a terminal takes both
  int failure[2] = {-1, -1};  // the errno if the program can't be started
};

WatchedProgram::Ends WatchedProgram::open_output() {
  Ends ends;
  const bool terminal = ::isatty(STDOUT_FILENO);
  const bool errors_to_terminal = terminal && ::isatty(STDERR_FILENO);
  if (terminal) {
    winsize size = {};
    ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    if (::openpty(&ends.out[0], &ends.out[1], nullptr, nullptr, &size) != 0) fail("cannot open a terminal");
    // Our terminal turns LF into CR LF already.
    termios mode = {};
    if (::tcgetattr(ends.out[1], &mode) == 0) {
      mode.c_oflag &= ~static_cast<tcflag_t>(OPOST);
      ::tcsetattr(ends.out[1], TCSANOW, &mode);
    }
  } else if (::pipe(ends.out) != 0) {
    fail("cannot open a pipe");
  }
  if (!errors_to_terminal && ::pipe(ends.err) != 0) fail("cannot open a pipe");
  for (const int end : {ends.out[0], ends.err[0]})
    if (end >= 0) ::fcntl(end, F_SETFD, FD_CLOEXEC);
  if (::pipe2(ends.failure, O_CLOEXEC) != 0) fail("cannot open a pipe");
  return ends;
}

// Runs in the new process.
void WatchedProgram::execute(const std::vector<std::string>& command, const Ends& ends) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  for (const int signal : passed_on) ::signal(signal, SIG_DFL);
  ::dup2(ends.out[1], STDOUT_FILENO);
  ::dup2(ends.err[1] >= 0 ? ends.err[1] : ends.out[1], STDERR_FILENO);
  for (const int end : {ends.out[1], ends.err[1]})
    if (end > STDERR_FILENO) ::close(end);
  ::setenv("PYTHONUNBUFFERED", "1", 0);
  ::signal(SIGPIPE, SIG_DFL);  // ours is ignored, and would be inherited
  ::execvp(arguments[0], arguments.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(ends.failure[1], &error, sizeof error);
  ::_exit(127);
}

WatchedProgram::WatchedProgram(const std::vector<std::string>& command) {
  const Ends ends = open_output();
  pid_ = ::fork();
  if (pid_ < 0) fail("cannot start a process");
  if (pid_ == 0) execute(command, ends);
  for (const int end : {ends.out[1], ends.err[1], ends.failure[1]})
    if (end >= 0) ::close(end);
  int error = 0;
  ssize_t count = 0;
  while ((count = ::read(ends.failure[0], &error, sizeof error)) < 0 && errno == EINTR) {
  }
  ::close(ends.failure[0]);
  out_ = ends.out[0];
  err_ = ends.err[0];
  if (count > 0) {
    ::waitpid(pid_, nullptr, 0);
    throw UsageError("'" + command.front() + "' cannot be started: " + std::strerror(error));
  }
  program = pid_;
}

WatchedProgram::~WatchedProgram() {
  for (const int end : {out_, err_})
    if (end >= 0) ::close(end);
}

std::optional<WatchedProgram::Output> WatchedProgram::read(std::vector<char>& piece) {
  while (out_ >= 0 || err_ >= 0) {
    pollfd ends[2] = {{.fd = out_, .events = POLLIN, .revents = 0}, {.fd = err_, .events = POLLIN, .revents = 0}};
    const int ready = ::poll(ends, 2, look_again_ms);
    if (ready < 0 && errno == EINTR) continue;
    // A program that has ended is over even if another process holds its output.
    if (ready == 0 && has_ended()) return std::nullopt;
    for (pollfd& end : ends) {
      if (end.fd < 0 || (end.revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      const ssize_t count = ::read(end.fd, piece.data(), piece.size());
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) {  // a terminal whose program has exited gives EIO
        int& closed = end.fd == out_ ? out_ : err_;
        ::close(closed);
        closed = -1;
        continue;
      }
      return Output{end.fd == out_ ? STDOUT_FILENO : STDERR_FILENO, static_cast<std::size_t>(count)};
    }
  }
  return std::nullopt;
}

int WatchedProgram::wait() {
  while (!has_ended()) {
    int status = 0;
    const pid_t pid = ::waitpid(pid_, &status, 0);
    if (pid == pid_) status_ = status;
    if (pid < 0 && errno != EINTR) status_ = 0;
  }
  return *status_;
}

bool WatchedProgram::has_ended() {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    status_ = status;
    program = 0;
  }
  return status_.has_value();
}

}  // namespace stepladder
