// Runs a command under a keeper, a process in a session of its own that writes the command's end to a state file. A
// lock that the keeper holds says that the command runs. So a killed program loses no run, and the next one waits for
// the keeper instead of measuring twice.
#include "app/record/measured_command.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "app/host/held_folder.h"
#include "app/keep/kept_program.h"
#include "engine/files/files.h"
#include "storage/database/process.h"
#include "storage/errors.h"
#include "storage/process.h"
#include "storage/process_stat.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto look_again = std::chrono::milliseconds(20);
constexpr auto patience_with_left = std::chrono::milliseconds(500);  // what a command has left behind
constexpr double busy_share = 0.05;                                  // of a processor
constexpr auto patience_with_stop = std::chrono::seconds(10);        // before SIGKILL

[[noreturn]] void fail(const fs::path& file, const char* what) {
  throw StorageError(file.string() + " " + what + ": " + std::strerror(errno));
}

// The lock that the keeper holds while the command runs. Contains the command's process: its number, start and boot.
fs::path lock_file(const MeasuredCommand& run) {
  return run.state.string() + ".lock";
}

class Lock {
 public:
  explicit Lock(const fs::path& file) : file_(open_private(file)) {}

  bool take() { return ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0; }
  int descriptor() const { return file_.get(); }
  ProcessIdentity program() const {
    char text[200] = {};
    [[maybe_unused]] const ssize_t count = ::pread(file_.get(), text, sizeof text - 1, 0);
    ProcessIdentity program;
    std::istringstream(text) >> program.pid >> program.start >> program.boot;
    return program;
  }

 private:
  Descriptor file_;
};

// True if it is the process that a keeper here has started: a file from elsewhere can't know its start and boot.
bool is_ours(const ProcessIdentity& program) {
  return program.pid > 1 && program.pid <= std::numeric_limits<pid_t>::max() && program.start > 0 &&
         !program.boot.empty() && is_alive(program);
}

// The seconds of a processor that the processes below this one have used so far, dead ones aside.
double seconds_of_descendants() {
  std::map<pid_t, ProcessStat> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (auto stat = process_stat(entry.path().string())) all[std::stoi(name)] = std::move(*stat);
  }
  double sum = 0;
  for (const auto& [pid, seen] : all)
    for (pid_t above = seen.parent; above > 1; above = all.contains(above) ? all[above].parent : 0)
      if (above == ::getpid()) {
        sum += seen.cpu_s;
        break;
      }
  return sum;
}

// Waits for what the command has left behind; false if some of it doesn't end within a moment.
bool all_end_soon() {
  for (const auto begin = Clock::now(); Clock::now() - begin < patience_with_left;
       std::this_thread::sleep_for(look_again)) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD) return true;
  }
  return false;
}

// Whether it works on; servers that wait don't.
bool are_busy() {
  const double before = seconds_of_descendants();
  std::this_thread::sleep_for(patience_with_left);
  return seconds_of_descendants() - before > busy_share * std::chrono::duration<double>(patience_with_left).count();
}

// Runs in the keeper: a process in a session of its own, which the end of this program doesn't affect.
[[noreturn]] void keep(const MeasuredCommand& run, int log, int lock) {
  ::setsid();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // what the command leaves behind becomes ours
  become_keeper({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE});
  leave_streams({STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO});
  CommandEnd end{.exit_status = 127, .started_at = unix_now(), .wall_s = 0};
  const auto begin = Clock::now();
  auto ended = begin;
  ::setenv("PYTHONUNBUFFERED", "1", 0);
  for (const auto& [name, value] : run.environment) ::setenv(name.c_str(), value.c_str(), 1);
  try {
    Process program({.command = run.command, .folder = run.folder, .output = log, .errors = log});
    program.leave_alone();
    const ProcessIdentity it = process_identity(program.pid());
    const std::string text = std::to_string(it.pid) + " " + std::to_string(it.start) + " " + it.boot + "\n";
    [[maybe_unused]] const ssize_t written = ::pwrite(lock, text.data(), text.size(), 0);
    program.wait();
    end.exit_status = program.exit_status();
    ended = Clock::now();
    if (all_end_soon())
      ended = Clock::now();
    else
      end.left_processes = are_busy();
  } catch (const std::exception& error) {
    ::dprintf(log, "stepladder: %s\n", error.what());
  }
  end.wall_s = std::chrono::duration<double>(ended - begin).count();
  ::fsync(log);
  // The run isn't over for others until its end is on the disk.
  const bool is_written = keep_trying(std::chrono::minutes(10), std::chrono::seconds(1), [&] {
    try {
      write_end(run.state, end);
      return true;
    } catch (const std::exception&) {
      return false;
    }
  });
  ::_exit(is_written ? 0 : 1);
}

void start(const MeasuredCommand& run, const Lock& lock) {
  const int log = ::open(run.log.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND, 0600);
  if (log < 0) fail(run.log, "cannot be made");
  if (::ftruncate(lock.descriptor(), 0) != 0) fail(lock_file(run), "cannot be written");
  const pid_t keeper = ::fork();
  if (keeper == 0) keep(run, log, lock.descriptor());
  const int error = errno;
  ::close(log);
  if (keeper > 0) return;
  fs::remove(run.log);
  errno = error;
  fail(run.log, "needs a process, which cannot be started");
}

// Ends the command and waits for its keeper.
void end_command(const MeasuredCommand& run) {
  const Lock lock(lock_file(run));
  const auto begin = Clock::now();
  for (bool asked = false; is_under_way(run); std::this_thread::sleep_for(look_again)) {
    const ProcessIdentity program = lock.program();
    if (!is_ours(program)) continue;
    const bool patience_is_over = Clock::now() - begin > patience_with_stop;
    if (!asked || patience_is_over) ::kill(-static_cast<pid_t>(program.pid), patience_is_over ? SIGKILL : SIGTERM);
    asked = true;
  }
}

}  // namespace

void write_end(const fs::path& state, const CommandEnd& end) {
  nlohmann::json json{{"exit_status", end.exit_status}, {"started_at", end.started_at}, {"wall_s", end.wall_s}};
  if (!end.host.empty()) json["host"] = end.host;
  if (end.left_processes) json["goes_on"] = true;
  write_whole(state, json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n", private_file);
}

std::optional<CommandEnd> end_of_command(const fs::path& state) {
  const auto text = text_of(state);
  if (!text) return {};
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  const auto is_number = [&](const char* key) { return json.contains(key) && json[key].is_number(); };
  if (!json.is_object() || !is_number("exit_status") || !is_number("started_at") || !is_number("wall_s"))
    throw StorageError(state.string() + " isn't the state of a run");
  const double status = json["exit_status"].get<double>(), wall_s = json["wall_s"].get<double>();
  if (!(status >= 0 && status <= 255) || !(wall_s >= 0 && wall_s < 1e9))
    throw StorageError(state.string() + " has an exit status or a time that no run has");
  const bool has_host = json.contains("host") && json["host"].is_string();
  return CommandEnd{static_cast<int>(status), json["started_at"].get<double>(), wall_s,
                    has_host ? json["host"].get<std::string>() : "",
                    json.contains("goes_on") && json["goes_on"] == true};
}

LogFigure figure_of_command(const FigureQuestion& question, const LoggedRun& logged, const CommandEnd& end) {
  if (question.by == FigureBy::wall) {
    if (end.left_processes)
      throw NoFigure("says nothing of its time: processes that it started worked on after its end");
    return {end.wall_s, "s"};
  }
  return figure_of_log(logged, question);
}

bool is_under_way(const MeasuredCommand& run) {
  Lock lock(lock_file(run));
  return !lock.take();
}

void put_log_aside(const MeasuredCommand& run, const std::string& what) {
  std::error_code error;
  for (int k = 1; fs::exists(run.log, error); ++k) {
    const fs::path aside = run.log.parent_path() / (run.log.stem().string() + "." + what + "-" + std::to_string(k) +
                                                    run.log.extension().string());
    if (fs::exists(aside, error)) continue;
    fs::rename(run.log, aside, error);
    if (error) throw StorageError(run.log.string() + " cannot be renamed: " + error.message());
  }
  fs::remove(run.state, error);
  if (error) throw StorageError(run.state.string() + " cannot be removed: " + error.message());
}

std::optional<CommandEnd> run_measured(const MeasuredCommand& run, const std::function<bool()>& stop) {
  {
    Lock lock(lock_file(run));
    if (lock.take()) {
      if (const auto end = end_of_command(run.state)) return end;
      if (stop()) return {};
      put_log_aside(run, "interrupted");
      start(run, lock);
    }
  }
  while (is_under_way(run)) {
    if (stop()) {
      end_command(run);
      put_log_aside(run, "interrupted");
      return {};
    }
    std::this_thread::sleep_for(look_again);
  }
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  const auto end = end_of_command(run.state);
  if (!end) throw StorageError(run.log.string() + ": the process that waited for this run was killed; start again");
  return end;
}

}  // namespace stepladder
