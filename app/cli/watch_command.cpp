#include "app/cli/watch_command.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <iostream>
#include <optional>
#include <thread>

#include "app/cli/cli.h"
#include "app/environment.h"
#include "engine/stage.h"
#include "storage/database/recorder.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t piece_size = 64 * 1024;
constexpr int look_again_ms = 200;  // at a followed file, and for signals

std::atomic<pid_t> child{0};     // who gets the signals
std::atomic<int> interrupts{0};  // signals that came while there was no child

void pass_on(int signal) {
  const pid_t pid = child.load();
  if (pid > 0)
    ::kill(pid, signal);
  else
    ++interrupts;
}

void take_signals() {
  struct sigaction action = {};
  action.sa_handler = pass_on;  // without SA_RESTART: a read that waits comes back
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::sigaction(signal, &action, nullptr);
}

// Returns the reason (an errno) where not all of it could be written.
int write_all(int descriptor, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::write(descriptor, data, size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      pollfd ready{.fd = descriptor, .events = POLLOUT, .revents = 0};
      ::poll(&ready, 1, look_again_ms);
      continue;
    }
    if (count <= 0) return errno;
    data += count;
    size -= static_cast<std::size_t>(count);
  }
  return 0;
}

// What the program prints goes on where its own output would have gone. Where that is not possible the steps are kept
// all the same; that nobody looks any more (EPIPE, EIO of a terminal, EBADF where it was closed) needs no word.
bool output_was_lost = false;

void show(int descriptor, const char* data, std::size_t size) {
  const int error = write_all(descriptor, data, size);
  if (error == 0 || error == EPIPE || error == EIO || error == EBADF || std::exchange(output_was_lost, true)) return;
  std::cerr << "stepladder: the program's output cannot be written on: " << std::strerror(error)
            << "; its steps are kept\n";
}

// The program whose steps are kept. Its output comes through pipes, or through a terminal of its own where ours is
// one, so that it prints line by line and in colour as it would without us.
class Child {
 public:
  explicit Child(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);

    const bool terminal = ::isatty(STDOUT_FILENO);
    const bool errors_to_terminal = terminal && ::isatty(STDERR_FILENO);
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    if (terminal) {
      winsize size = {};
      ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
      if (::openpty(&out[0], &out[1], nullptr, nullptr, &size) != 0) fail("no terminal can be made");
      // Our terminal turns LF into CR LF already.
      termios mode = {};
      if (::tcgetattr(out[1], &mode) == 0) {
        mode.c_oflag &= ~static_cast<tcflag_t>(OPOST);
        ::tcsetattr(out[1], TCSANOW, &mode);
      }
    } else if (::pipe(out) != 0) {
      fail("no pipe can be made");
    }
    if (!errors_to_terminal && ::pipe(err) != 0) fail("no pipe can be made");
    for (const int end : {out[0], err[0]})
      if (end >= 0) ::fcntl(end, F_SETFD, FD_CLOEXEC);
    int failure[2];
    if (::pipe2(failure, O_CLOEXEC) != 0) fail("no pipe can be made");

    pid_ = ::fork();
    if (pid_ < 0) fail("no process can be started");
    if (pid_ == 0) {
      for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(signal, SIG_DFL);
      ::dup2(out[1], STDOUT_FILENO);
      ::dup2(errors_to_terminal ? out[1] : err[1], STDERR_FILENO);
      for (const int end : {out[1], err[1]})
        if (end > STDERR_FILENO) ::close(end);
      ::setenv("PYTHONUNBUFFERED", "1", 0);
      ::signal(SIGPIPE, SIG_DFL);  // ours is ignored, and would be inherited
      ::execvp(arguments[0], arguments.data());
      const int error = errno;
      [[maybe_unused]] const ssize_t told = ::write(failure[1], &error, sizeof error);
      ::_exit(127);
    }
    for (const int end : {out[1], err[1], failure[1]})
      if (end >= 0) ::close(end);
    int error = 0;
    ssize_t told = 0;
    while ((told = ::read(failure[0], &error, sizeof error)) < 0 && errno == EINTR) {
    }
    ::close(failure[0]);
    out_ = out[0];
    err_ = err[0];
    if (told > 0) {
      ::waitpid(pid_, nullptr, 0);
      throw UsageError("'" + command.front() + "' cannot be started: " + std::strerror(error));
    }
    child = pid_;
  }

  ~Child() {
    for (const int end : {out_, err_})
      if (end >= 0) ::close(end);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Shows what has come and puts it into `piece`; false once the program has closed its output or ended.
  bool read(std::vector<char>& piece, std::size_t& size) {
    while (out_ >= 0 || err_ >= 0) {
      pollfd ends[2] = {{.fd = out_, .events = POLLIN, .revents = 0}, {.fd = err_, .events = POLLIN, .revents = 0}};
      const int ready = ::poll(ends, 2, look_again_ms);
      if (ready < 0 && errno == EINTR) continue;
      // A program that has ended but left somebody holding its output is over all the same.
      if (ready == 0 && has_ended()) return false;
      for (pollfd& end : ends) {
        if (end.fd < 0 || (end.revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
        const ssize_t count = ::read(end.fd, piece.data(), piece.size());
        if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (count <= 0) {  // a terminal whose program has gone gives EIO
          int& closed = end.fd == out_ ? out_ : err_;
          ::close(closed);
          closed = -1;
          continue;
        }
        size = static_cast<std::size_t>(count);
        show(end.fd == out_ ? STDOUT_FILENO : STDERR_FILENO, piece.data(), size);
        return true;
      }
    }
    return false;
  }

  // Waits for its end.
  int wait() {
    while (!has_ended()) {
      int status = 0;
      const pid_t pid = ::waitpid(pid_, &status, 0);
      if (pid == pid_) status_ = status;
      if (pid < 0 && errno != EINTR) status_ = 0;
    }
    return *status_;
  }

 private:
  [[noreturn]] static void fail(const char* what) {
    throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
  }

  bool has_ended() {
    int status = 0;
    if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = status;
      child = 0;
    }
    return status_.has_value();
  }

  pid_t pid_ = 0;
  int out_ = -1;
  int err_ = -1;
  std::optional<int> status_;
};

// What the importer reads: whatever `more` fills in next, nothing at the end.
class LiveInput : public ImportInput {
 public:
  using More = std::function<bool(std::vector<char>& piece, std::size_t& size)>;
  LiveInput(More more, fs::path path) : more_(std::move(more)), path_(std::move(path)), piece_(piece_size) {}

  // The first piece only: what comes later cannot be waited for.
  std::string_view head() override {
    if (!head_read_) {
      head_read_ = waits_ = true;
      std::size_t size = 0;
      if (more_(piece_, size)) head_.assign(piece_.data(), size);
    }
    return head_;
  }

  std::string_view next() override {
    if (head_read_ && std::exchange(waits_, false)) return head_;
    std::size_t size = 0;
    if (!more_(piece_, size)) return {};
    return {piece_.data(), size};
  }

  const fs::path& path() const override { return path_; }

 private:
  More more_;
  fs::path path_;
  std::vector<char> piece_;
  std::string head_;
  bool head_read_ = false;
  bool waits_ = false;
};

// Posts what the importer says to the writer thread. The first run is the one that was made at the start; a program
// that begins another gets another row.
class LiveSink : public ImportSink {
 public:
  LiveSink(RunStore& store, Recorder& recorder, Run first)
      : store_(store), recorder_(recorder), template_(first), run_(first.id) {}

  void begin_run(const Run& run) override {
    if (told_ > 0) {
      Run next = template_;
      next.name = template_.name + " " + std::to_string(told_ + 1);
      next.started_at = unix_now();
      run_ = store_.create_run(next);
    }
    ++told_;
    start(run);
  }

  void step(const StepRecord& record) override {
    StepRecord step = record;
    step.run = run_;
    if (is_missing(step.at)) step.at = unix_now();
    recorder_.post(step);
  }

  void end_run(const Run& run) override {
    start(run);
    last_ = run;
    // The last one ends with the program, and with its status.
    if (previous_) recorder_.post(RunEnded{.run = *previous_, .at = unix_now(), .status = RunStatus::finished});
    previous_ = run_;
  }

  void ladder(const Ladder&, std::span<const int>) override {}
  void note(std::int64_t, std::string) override {}

  void end(RunStatus status, const std::string& reason) {
    if (previous_ && *previous_ != run_)
      recorder_.post(RunEnded{.run = *previous_, .at = unix_now(), .status = RunStatus::finished});
    recorder_.post(RunEnded{.run = run_, .at = unix_now(), .status = status, .reason = reason});
  }

 private:
  void start(const Run& run) {
    recorder_.post(RunStarted{.run = run_,
                              .at = template_.started_at,
                              .tokens_per_step = run.tokens_per_step,
                              .params = run.params,
                              .device = run.device,
                              .hardware = run.hardware,
                              .precision = run.precision,
                              .sync = Sync::unknown,
                              .recipe = run.recipe});
  }

  RunStore& store_;
  Recorder& recorder_;
  Run template_;
  Run last_;
  RunId run_;
  std::optional<RunId> previous_;
  int told_ = 0;
};

// What `more` gives goes on being shown even where nothing can be kept of it.
void drain(const LiveInput::More& more) {
  std::vector<char> piece(piece_size);
  std::size_t size = 0;
  while (more(piece, size)) {
  }
}

constexpr std::size_t most_console_bytes = 8 << 20;  // of a run that are kept

// `more`, and what it gives is kept with the run too.
LiveInput::More kept(LiveInput::More more, Recorder& recorder, RunId run) {
  return [more = std::move(more), &recorder, run, left = most_console_bytes](auto& piece, auto& size) mutable {
    if (!more(piece, size)) return false;
    const std::size_t take = std::min(left, size);
    if (take > 0) recorder.post(ConsoleText{.run = run, .at = unix_now(), .text = {piece.data(), take}});
    left -= take;
    return true;
  };
}

LiveInput::More standard_input() {
  return [](std::vector<char>& piece, std::size_t& size) {
    while (interrupts == 0) {
      const ssize_t count = ::read(STDIN_FILENO, piece.data(), piece.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      size = static_cast<std::size_t>(count);
      show(STDOUT_FILENO, piece.data(), size);
      return true;
    }
    return false;
  };
}

// Reads on where a file grows, until interrupted; a file that was cut is read from its start.
LiveInput::More growing_file(int descriptor) {
  return [descriptor, done = off_t{0}](std::vector<char>& piece, std::size_t& size) mutable {
    while (interrupts == 0) {
      const ssize_t count = ::pread(descriptor, piece.data(), piece.size(), done);
      if (count > 0) {
        done += count;
        size = static_cast<std::size_t>(count);
        show(STDOUT_FILENO, piece.data(), size);
        return true;
      }
      if (const off_t end = ::lseek(descriptor, 0, SEEK_END); end >= 0 && end < done) done = 0;
      ::poll(nullptr, 0, look_again_ms);
    }
    return false;
  };
}

}  // namespace

int watch(const WatchRequest& request) {
  take_signals();
  const bool follows = !request.follow.empty();
  int file = -1;
  if (follows) {
    file = ::open(request.follow.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) throw UsageError(request.follow.string() + " cannot be opened: " + std::strerror(errno));
    if (fs::is_directory(request.follow)) throw UsageError(request.follow.string() + " is a folder, not a file");
  }
  RunStore store = RunStore::open(request.database);
  store.close_dead_runs();
  // Before any thread is made: the child is forked from a process with one.
  std::optional<Child> program;
  if (!request.command.empty()) program.emplace(request.command);

  Run run;
  run.name = request.name;
  if (run.name.empty())
    run.name = program   ? fs::path(request.command.front()).filename().string()
               : follows ? request.follow.stem().string()
                         : "stdin";
  run.status = RunStatus::running;
  run.source = "import";
  if (follows) run.source_path = fs::absolute(request.follow).lexically_normal().string();
  run.started_at = unix_now();
  run.params = request.options.params;
  run.tokens_per_step = request.options.tokens_per_step;
  run.hardware = request.options.hardware;
  run.environment = environment_json();
  run.id = store.create_run(run);

  LiveInput::More more = program ? LiveInput::More([&](auto& piece, auto& size) { return program->read(piece, size); })
                         : follows ? growing_file(file)
                                   : standard_input();
  int status = exit_done;
  std::string nothing_read;
  {
    Recorder recorder(request.database, [](const std::string& error) {
      std::cerr << "stepladder: " << error << "; the program goes on, but its steps are not kept\n";
    });
    LiveSink sink(store, recorder, run);
    ImportOptions options = request.options;
    options.live = true;
    options.known_stages = &known_stages();
    const LiveInput::More keeping = kept(more, recorder, run.id);
    LiveInput input(keeping, request.follow);
    try {
      importers::step_log().read(input, options, sink);
    } catch (const ImportError& error) {
      nothing_read = std::string("the output ") + error.what();
      drain(keeping);
    }
    RunStatus ended = RunStatus::finished;
    std::string reason;
    if (program) {
      const int how = program->wait();
      if (WIFSIGNALED(how)) {
        status = 128 + WTERMSIG(how);
        reason = "killed by signal " + std::to_string(WTERMSIG(how));
      } else if (WEXITSTATUS(how) != 0) {
        status = WEXITSTATUS(how);
        reason = "exit status " + std::to_string(status);
      }
      if (!reason.empty()) ended = RunStatus::failed;
    }
    sink.end(ended, reason);
    recorder.flush();
  }
  if (file >= 0) ::close(file);
  if (!nothing_read.empty()) std::cerr << "stepladder: " << nothing_read << "\n";
  return status == exit_done && output_was_lost ? exit_failed : status;
}

}  // namespace stepladder
