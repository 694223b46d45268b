#include "app/import/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "app/exit_status.h"
#include "storage/process.h"

namespace stepladder {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int look_at_output_ms = 200;  // at a program that has ended while another process holds its output
constexpr int signals_of_the_terminal[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGTTOU, SIGTTIN, SIGPIPE};

// The program waits, as for a slow terminal, while a tracker that reads is so far behind. It never waits for one that
// doesn't read; then at most `most_kept` is kept.
constexpr std::int64_t most_behind = 64 << 20;
constexpr std::int64_t most_kept = 1 << 30;
constexpr auto tracker_patience = 2s;
constexpr std::size_t most_in_memory = 16 << 20;  // while the disk is full
constexpr auto last_patience = 60s;               // for a full disk, once the program has ended

// [0] is the keeper's, [1] the program's.
struct Ends {
  int out[2] = {-1, -1};
  int err[2] = {-1, -1};      // -1: a terminal takes both
  int failure[2] = {-1, -1};  // the errno if the program can't be started
};

bool hang_ups_are_ignored = false;  // started by nohup

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

Ends open_output() {
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

Launch launch_of(const std::vector<std::string>& command, const Ends& ends) {
  Launch launch{.command = command,
                .input = Launch::inherited,
                .output = ends.out[1],
                .errors = ends.err[1] >= 0 ? ends.err[1] : ends.out[1],
                .group = Launch::Group::ours};
  if (!std::getenv("PYTHONUNBUFFERED")) launch.environment.push_back("PYTHONUNBUFFERED=1");
  if (hang_ups_are_ignored) launch.ignored_signals.push_back(SIGHUP);
  return launch;
}

volatile std::sig_atomic_t window_changed = 0;

void note_window(int) {
  window_changed = 1;
}

class Keeper {
 public:
  Keeper(const Spool& spool, const Ends& ends, Process& program)
      : spool_(spool), state_(spool.state()), out_(ends.out[0]), err_(ends.err[0]), program_(program) {}

  void run() {
    std::vector<char> piece(64 * 1024);
    while (out_ >= 0 || err_ >= 0) {
      if (tracker_is_behind()) {
        ::usleep(5000);
        continue;
      }
      if (window_changed) copy_window();
      pollfd ends[2] = {{.fd = out_, .events = POLLIN, .revents = 0}, {.fd = err_, .events = POLLIN, .revents = 0}};
      const int ready = ::poll(ends, 2, look_at_output_ms);
      if (ready < 0 && errno == EINTR) continue;
      // A program that has ended is over even if another process holds its output.
      if (ready == 0 && program_.has_ended()) break;
      if (ready == 0 && !waiting_.empty()) append(nullptr, 0);
      for (const pollfd& end : ends)
        if (end.fd >= 0 && (end.revents & (POLLIN | POLLHUP | POLLERR)) != 0) read_from(end.fd, piece);
    }
    program_.wait();
    finish();
  }

 private:
  void read_from(int end, std::vector<char>& piece) {
    const ssize_t count = ::read(end, piece.data(), piece.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count <= 0) {  // a terminal whose program has exited gives EIO
      ::close(end);
      (end == out_ ? out_ : err_) = -1;
      return;
    }
    const auto size = static_cast<std::size_t>(count);
    // Appended first: what a reader of the output has seen is kept.
    append(piece.data(), size);
    const int error = write_all(end == out_ ? STDOUT_FILENO : STDERR_FILENO, piece.data(), size);
    // A reader that has exited (EPIPE, EIO of a terminal, EBADF if it was closed) isn't an error.
    if (error != 0 && error != EPIPE && error != EIO && error != EBADF) state_.output_error = error;
  }

  bool tracker_is_behind() {
    const std::int64_t taken = state_.taken;
    const auto now = Clock::now();
    if (taken != taken_) {
      taken_ = taken;
      taken_at_ = now;
    }
    return appended_ - taken > most_behind && now - taken_at_ < tracker_patience;
  }

  // What can't be appended waits in memory for the next time.
  void append(const char* data, std::size_t size) {
    if (appended_ - state_.taken > most_kept || waiting_.size() + size > most_in_memory) {
      state_.lost += static_cast<std::int64_t>(size);
      size = 0;
    }
    waiting_.append(data, size);
    while (!waiting_.empty()) {
      const ssize_t count = ::write(spool_.output(), waiting_.data(), waiting_.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return;
      appended_ += count;
      waiting_.erase(0, static_cast<std::size_t>(count));
    }
  }

  void finish() {
    for (const auto end = Clock::now() + last_patience; !waiting_.empty() && Clock::now() < end; ::usleep(200'000))
      append(nullptr, 0);
    state_.lost += static_cast<std::int64_t>(waiting_.size());
    state_.wait_status = program_.wait_status();
    state_.ended = 1;
  }

  void copy_window() {
    window_changed = 0;
    winsize size = {};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) ::ioctl(out_, TIOCSWINSZ, &size);
  }

  const Spool& spool_;
  SpoolState& state_;
  int out_, err_;
  Process& program_;
  std::string waiting_;
  std::int64_t appended_ = 0;
  std::int64_t taken_ = 0;
  Clock::time_point taken_at_ = Clock::now();
};

// Runs in the keeper's process.
[[noreturn]] void keep(const std::vector<std::string>& command, const Spool& spool, const Ends& ends) {
  for (const int signal : signals_of_the_terminal) ::signal(signal, SIG_IGN);
  struct sigaction window = {};
  window.sa_handler = note_window;
  ::sigaction(SIGWINCH, &window, nullptr);
  ::prctl(PR_SET_NAME, "stepladder-keep");
  std::optional<Process> program;
  try {
    program.emplace(launch_of(command, ends));
    program->leave_alone();
  } catch (const std::system_error& failure) {
    const int error = failure.code().value();
    [[maybe_unused]] const ssize_t written = ::write(ends.failure[1], &error, sizeof error);
    ::_exit(exit_failed);
  }
  spool.state().program.set(process_identity(program->pid()));
  // Others' ends of pipes would keep their readers waiting, and the database must not be shared.
  close_all_but({ends.out[0], ends.err[0], spool.output()});
  if (const int nothing = ::open("/dev/null", O_RDONLY); nothing >= 0) {
    ::dup2(nothing, STDIN_FILENO);
    if (nothing > STDERR_FILENO) ::close(nothing);
  }
  Keeper(spool, ends, *program).run();
  ::_exit(exit_done);
}

}  // namespace

int write_all(int descriptor, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::write(descriptor, data, size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      pollfd ready{.fd = descriptor, .events = POLLOUT, .revents = 0};
      ::poll(&ready, 1, look_at_output_ms);
      continue;
    }
    if (count <= 0) return errno;
    data += count;
    size -= static_cast<std::size_t>(count);
  }
  return 0;
}

pid_t start_keeper(const std::vector<std::string>& command, const Spool& spool) {
  struct sigaction hang_up = {};
  ::sigaction(SIGHUP, nullptr, &hang_up);
  hang_ups_are_ignored = hang_up.sa_handler == SIG_IGN;
  const Ends ends = open_output();
  const pid_t keeper = ::fork();
  if (keeper < 0) fail("cannot start a process");
  if (keeper == 0) keep(command, spool, ends);
  for (const int end : {ends.out[0], ends.out[1], ends.err[0], ends.err[1], ends.failure[1]})
    if (end >= 0) ::close(end);
  int error = 0;
  ssize_t count = 0;
  while ((count = ::read(ends.failure[0], &error, sizeof error)) < 0 && errno == EINTR) {
  }
  ::close(ends.failure[0]);
  if (count > 0) {
    ::waitpid(keeper, nullptr, 0);
    throw UsageError("'" + command.front() + "' cannot be started: " + std::strerror(error));
  }
  return keeper;
}

}  // namespace stepladder
