// Keeps the program of `watch -- COMMAND`: passes its output on to where it would have gone, and appends it to the
// spool. It is a copy of the tracker rather than a program of its own, so it must close what the tracker has open.
#include "app/import/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "app/exit_status.h"
#include "app/keep/kept_program.h"

namespace stepladder {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto poll_interval = 200ms;
constexpr auto while_behind = 5ms;
constexpr auto held_patience = std::chrono::hours(24 * 365);  // what a program leaves running may print on for ever
constexpr auto signals_of_the_terminal = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGTTOU, SIGTTIN, SIGPIPE};

// A tracker that reads but is so far behind makes the program wait, as a slow terminal does. One that doesn't read
// never does; then at most `most_kept` is kept.
constexpr std::int64_t most_behind = 64 << 20;
constexpr std::int64_t most_kept = 1 << 30;
constexpr auto tracker_patience = 2s;
constexpr std::size_t most_in_memory = 16 << 20;  // while the disk is full
constexpr auto last_patience = 60s;               // for a full disk, once the program has ended

// The program's outputs: the ends of the keeper and those of the program.
struct Outputs {
  Descriptor out, err;  // err is empty: a terminal takes both
  Descriptor their_out, their_err;
};

// A terminal of the program's own, of the size of ours.
void open_terminal(Descriptor& ours, Descriptor& theirs) {
  winsize size = {};
  ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  int first = -1, second = -1;
  if (::openpty(&first, &second, nullptr, nullptr, &size) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot open a terminal");
  ours = Descriptor(first);
  theirs = Descriptor(second);
  for (const int end : {first, second}) ::fcntl(end, F_SETFD, FD_CLOEXEC);
  // Our terminal turns LF into CR LF already.
  termios mode = {};
  if (::tcgetattr(second, &mode) != 0) return;
  mode.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  ::tcsetattr(second, TCSANOW, &mode);
}

Outputs open_outputs() {
  Outputs outputs;
  const auto pipe_to = [](Descriptor& ours, Descriptor& theirs) {
    Pipe pipe;
    ours = std::move(pipe.read);
    theirs = std::move(pipe.write);
  };
  const bool has_terminal = ::isatty(STDOUT_FILENO);
  if (has_terminal)
    open_terminal(outputs.out, outputs.their_out);
  else
    pipe_to(outputs.out, outputs.their_out);
  if (!has_terminal || !::isatty(STDERR_FILENO)) pipe_to(outputs.err, outputs.their_err);
  return outputs;
}

Launch launch_of(const std::vector<std::string>& command, const Outputs& outputs) {
  Launch launch{.command = command,
                .input = Launch::inherited,
                .output = outputs.their_out.get(),
                .errors = (outputs.their_err ? outputs.their_err : outputs.their_out).get(),
                .group = Launch::Group::ours};
  for (const int signal : ignored_signals())
    if (signal == SIGHUP) launch.ignored_signals.push_back(signal);  // started by nohup
  return launch;
}

volatile std::sig_atomic_t window_changed = 0;

void note_window(int) {
  window_changed = 1;
}

class Keeper {
 public:
  Keeper(const Spool& spool, KeptProgram& program) : spool_(spool), state_(spool.state()), program_(program) {}

  void run() {
    const auto on_output = [this](int stream, std::string_view bytes) {
      // Appended before it is passed on, so that everything that a reader has seen is kept.
      append(bytes);
      pass_on(stream, bytes);
    };
    while (!program_.is_over()) {
      if (tracker_is_behind()) {
        std::this_thread::sleep_for(while_behind);
        continue;
      }
      if (window_changed) copy_window();
      append({});
      program_.poll(poll_interval, on_output);
    }
    keep_trying(last_patience, poll_interval, [this] {
      append({});
      return waiting_.empty();
    });
    state_.lost += static_cast<std::int64_t>(waiting_.size());
    state_.wait_status = program_.process().wait_status();
    state_.ended = 1;
  }

 private:
  void pass_on(int stream, std::string_view bytes) {
    const int error = write_all(stream, bytes.data(), bytes.size());
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

  // Appends to the spool; bytes that can't be written wait in memory for the next call.
  void append(std::string_view bytes) {
    if (appended_ - state_.taken > most_kept || waiting_.size() + bytes.size() > most_in_memory) {
      state_.lost += static_cast<std::int64_t>(bytes.size());
      bytes = {};
    }
    waiting_.append(bytes);
    while (!waiting_.empty()) {
      const ssize_t count = ::write(spool_.output(), waiting_.data(), waiting_.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return;
      appended_ += count;
      waiting_.erase(0, static_cast<std::size_t>(count));
    }
  }

  void copy_window() {
    window_changed = 0;
    winsize size = {};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) ::ioctl(program_.out(), TIOCSWINSZ, &size);
  }

  const Spool& spool_;
  SpoolState& state_;
  KeptProgram& program_;
  std::string waiting_;
  std::int64_t appended_ = 0;
  std::int64_t taken_ = 0;
  Clock::time_point taken_at_ = Clock::now();
};

// Runs in the keeper's process. The errno goes through `failure` if the program can't be started.
[[noreturn]] void keep(const std::vector<std::string>& command, const Spool& spool, Outputs outputs, int failure) {
  ::setenv("PYTHONUNBUFFERED", "1", 0);
  const Launch launch = launch_of(command, outputs);
  become_keeper(signals_of_the_terminal);
  struct sigaction window = {};
  window.sa_handler = note_window;
  ::sigaction(SIGWINCH, &window, nullptr);
  try {
    KeptProgram program(Process(launch), std::move(outputs.out), std::move(outputs.err), held_patience);
    spool.state().program.set(process_identity(program.process().pid()));
    // Others' ends of pipes would keep their readers waiting, and the database must not be shared.
    program.close_others(spool.output());
    leave_streams({STDIN_FILENO});
    Keeper(spool, program).run();
    ::_exit(exit_done);
  } catch (const std::system_error& error) {
    const int reason = error.code().value();
    [[maybe_unused]] const ssize_t written = ::write(failure, &reason, sizeof reason);
    ::_exit(exit_failed);
  } catch (...) {  // never back into the tracker, whose copy this is
    ::_exit(exit_failed);
  }
}

}  // namespace

int write_all(int descriptor, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::write(descriptor, data, size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      pollfd ready{.fd = descriptor, .events = POLLOUT, .revents = 0};
      ::poll(&ready, 1, static_cast<int>(poll_interval.count()));
      continue;
    }
    if (count <= 0) return errno;
    data += count;
    size -= static_cast<std::size_t>(count);
  }
  return 0;
}

pid_t start_keeper(const std::vector<std::string>& command, const Spool& spool) {
  Outputs outputs = open_outputs();
  Pipe failure;
  const pid_t keeper = ::fork();
  if (keeper < 0) throw std::system_error(errno, std::generic_category(), "cannot start a process");
  if (keeper == 0) keep(command, spool, std::move(outputs), failure.write.get());
  failure.write.reset();
  int error = 0;
  ssize_t count = 0;
  while ((count = ::read(failure.read.get(), &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (count > 0) {
    ::waitpid(keeper, nullptr, 0);
    throw NotFound("'" + command.front() + "' cannot be started: " + std::strerror(error),
                   {.argument = "command", .value = command.front()});
  }
  return keeper;
}

}  // namespace stepladder
