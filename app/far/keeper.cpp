// Keeps one run's program: claims the request, so that one keeper of several runs it, starts the program, and writes
// its output, signals and end to the journal. It answers its starter before it begins, then depends on nobody: not the
// talker, not the link, not a full disk.
#include "app/far/keeper.h"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <list>
#include <optional>
#include <system_error>

#include "app/far/machine.h"
#include "app/far/output_journal.h"
#include "app/far/run_folder.h"
#include "app/keep/kept_program.h"
#include "app/text/secrets.h"
#include "storage/database/process.h"
#include "storage/process.h"

namespace stepladder::far {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto line_patience = 50ms;  // for a line to become whole, twice
constexpr auto held_patience = 2s;    // with what others print on the output of a program that has ended
constexpr auto alive_interval = 10s;
constexpr auto control_interval = 2s;
constexpr std::chrono::seconds last_patience = 1h;          // for a full disk, once the program has ended
constexpr std::chrono::seconds last_patience_in_job = 60s;  // a job's time is paid for
constexpr int exit_failed = 1;

// The effect on the program of each signal to the keeper.
struct Meaning {
  int received;
  const char* name;
  int sent;
};
constexpr Meaning meanings[] = {{SIGINT, "stop", SIGINT},       {SIGTERM, "terminate", SIGTERM},
                                {SIGQUIT, "kill", SIGKILL},     {SIGTSTP, "pause", SIGSTOP},
                                {SIGCONT, "continue", SIGCONT}, {SIGUSR1, "time limit", SIGINT}};

const char* signal_option(int signal) {
  switch (signal) {
    case SIGINT:
      return "--signal=INT";
    case SIGTERM:
      return "--signal=TERM";
    case SIGSTOP:
      return "--signal=STOP";
    case SIGCONT:
      return "--signal=CONT";
    default:
      return "--signal=KILL";
  }
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

// As squeue writes it: "1234", or "1234_5" for the fifth task of an array.
std::string job_of_slurm() {
  const std::string array = variable("SLURM_ARRAY_JOB_ID");
  return array.empty() ? variable("SLURM_JOB_ID") : array + "_" + variable("SLURM_ARRAY_TASK_ID");
}

class Keeper {
 public:
  Keeper(std::string path, Descriptor folder, Request request)
      : path_(std::move(path)), folder_(std::move(folder)), request_(std::move(request)) {}

  int run();

 private:
  bool claim();
  void open_journal();
  void first_line();
  void receive_signals();
  void keep_program();
  bool start_program();
  void end(const std::string& status, int code, const std::string& reason);
  void end_as(int wait_status);

  int run_child(Launch launch, bool is_program);
  void write_output(Clock::time_point now);
  void maintain(Clock::time_point now);
  void on_signal(int signal);
  void send(const Meaning& meaning);
  void read_control();
  void handle_signals();
  bool in_job() const { return request_.slurm && !job_.empty(); }
  bool through_srun() const { return in_job() && request_.slurm->has_several_tasks(); }

  const std::string path_;
  const Descriptor folder_;
  const Request request_;
  const std::string job_ = job_of_slurm();
  Descriptor keeper_folder_;
  std::optional<OutputJournal> journal_;
  std::int64_t attempt_ = 1;
  Descriptor signals_;

  std::string waiting_;  // output that isn't in the journal yet
  Clock::time_point waiting_since_{};
  bool half_line_ = false;            // the line at its end has waited once
  std::optional<KeptProgram> child_;  // the program, or tar before it
  bool is_program_ = false;
  std::list<Process> cancels_;  // scancel, as often as it was needed

  std::string asked_;  // the first request to end the program: stop, terminate, kill, time limit
  bool paused_ = false;
  std::int64_t next_control_ = 1;
  Clock::time_point next_control_look_{};
  Clock::time_point next_sync_{};
  Clock::time_point next_write_{};
};

int Keeper::run() {
  if (!claim()) return 0;
  open_journal();
  receive_signals();
  first_line();
  journal_->write();
  journal_->sync();
  [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, "{\"ok\":{}}\n", 10);
  leave_streams({STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO});
  [[maybe_unused]] const int moved = ::chdir("/");
  keep_program();
  keep_trying(in_job() ? last_patience_in_job : last_patience, 1s, [this] {
    journal_->write();
    journal_->sync();
    return journal_->is_complete();
  });
  return 0;
}

// Only one of the keepers that were started for this request runs the program. A job that Slurm starts again is another
// claim.
bool Keeper::claim() {
  keeper_folder_ = make_folder_below(folder_.get(), "keeper");
  if (!keeper_folder_) throw refused(path_ + "/keeper", "cannot be made", errno);
  const std::string restarts = in_job() ? variable("SLURM_RESTART_COUNT") : "";
  const ProcessIdentity self = this_process();
  const Json identity = {{"t", now()},        {"host", host_name()}, {"pid", self.pid}, {"pid_start", self.start},
                         {"boot", self.boot}, {"job", job_}};
  return create_once(keeper_folder_.get(),
                     "claim-" + std::to_string(request_.number) + "." + (restarts.empty() ? "0" : restarts),
                     as_text(identity));
}

void Keeper::open_journal() {
  const auto attempts = attempts_in(folder_.get());
  attempt_ = attempts.empty() ? 1 : attempts.back() + 1;
  for (;; ++attempt_) {
    Descriptor file(::openat(keeper_folder_.get(), attempt_journal(attempt_).c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file && errno == EEXIST) continue;
    if (!file) throw refused(path_ + "/keeper/" + attempt_journal(attempt_), "cannot be made", errno);
    journal_.emplace(JournalFile(std::move(file), path_ + "/keeper/" + attempt_journal(attempt_)));
    break;
  }
  create_once(keeper_folder_.get(), "uid", request_.run + "\n");
  for (const char* const name : {"journals", "work"})
    if (!make_folder_below(folder_.get(), name)) throw refused(path_ + "/" + name, "cannot be made", errno);
  // A job that Slurm starts again ignores the signals of its former start.
  if (!variable("SLURM_RESTART_COUNT").empty())
    while (faccessat(folder_.get(), ("control/" + control_name(request_.number, next_control_)).c_str(), F_OK, 0) == 0)
      ++next_control_;
}

void Keeper::first_line() {
  const ProcessIdentity self = this_process();
  Json line = {{"e", "run"},
               {"v", 1},
               {"uid", request_.run},
               {"id", request_.run},
               {"name", request_.name},
               {"project", ""},
               {"attempt", attempt_},
               {"rank", 0},
               {"local_rank", 0},
               {"world", 1},
               {"t", now()},
               {"host", host_name()},
               {"pid", self.pid},
               {"pid_start", self.start},
               {"boot", self.boot},
               {"argv", each_without_secrets(request_.command)},
               {"cwd", request_.folder.empty() ? path_ + "/work" : request_.folder},
               {"client", std::string("stepladder-far ") + STEPLADDER_VERSION},
               {"request", request_.number}};
  if (in_job()) line["job"] = job_;
  if (in_job()) line["nodes"] = variable("SLURM_JOB_NODELIST");
  journal_->append(line);
}

void Keeper::receive_signals() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const Meaning& meaning : meanings) sigaddset(&taken, meaning.received);
  for (const int signal : {SIGUSR2, SIGCHLD, SIGHUP, SIGPIPE, SIGTTIN, SIGTTOU}) sigaddset(&taken, signal);
  ::sigprocmask(SIG_SETMASK, &taken, nullptr);
  signals_ = Descriptor(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) throw refused("Signals", "cannot be received", errno);
}

void Keeper::keep_program() {
  try {
    if (start_program()) end_as(child_->process().wait_status());
  } catch (const Refusal& refusal) {
    end("failed", 127, refusal.what());
  } catch (const std::system_error& error) {
    end("failed", 127, std::string(error.what()) + ".");
  }
}

// Unpacks the tree that was sent, then runs the program to its end. Returns false if the end is in the journal already.
bool Keeper::start_program() {
  const bool is_unpacked = faccessat(keeper_folder_.get(), "unpacked", F_OK, 0) == 0;
  if (!request_.tree.empty() && !is_unpacked) {
    const int status =
        run_child({.command = {"tar", "-xzf", path_ + "/../" + request_.leader() + "/files/" + request_.tree, "-C",
                               path_ + "/work"}},
                  false);
    if (status != 0 && asked_.empty()) {
      end("failed", 1, "The code that was sent could not be unpacked.");
      return false;
    }
    if (status == 0) create_once(keeper_folder_.get(), "unpacked", "");
  }
  if (!asked_.empty()) {
    end("stopped", 130, "It was stopped before the program began.");
    return false;
  }
  Launch launch{.command = request_.command, .folder = request_.folder};
  if (launch.folder.empty()) launch.folder = path_ + "/work";
  if (launch.folder[0] == '~') launch.folder.replace(0, 1, home_folder());
  // Of the program alone: scancel, which a signal may need, is to be this machine's.
  if (const char* const unbuffered = std::getenv("PYTHONUNBUFFERED"); !unbuffered || !*unbuffered)
    launch.environment.emplace_back("PYTHONUNBUFFERED=1");
  for (const auto& [name, value] : request_.environment) {
    std::erase_if(launch.environment, [&](const std::string& other) { return other.starts_with(name + "="); });
    launch.environment.push_back(name + "=" + value);
  }
  std::erase_if(launch.environment, [](const std::string& other) { return other.starts_with("STEPLADDER_DIR="); });
  launch.environment.push_back("STEPLADDER_DIR=" + path_ + "/journals");
  if (through_srun()) {
    // A process that stops first must not take those with it that are still saving.
    std::vector<std::string> srun = {"srun", "--kill-on-bad-exit=0", own_program(), "rank", "--"};
    if (request_.environment.contains("SLURM_KILL_BAD_EXIT")) srun.erase(srun.begin() + 1);
    launch.command.insert(launch.command.begin(), srun.begin(), srun.end());
  }
  run_child(launch, true);
  return true;
}

void Keeper::end_as(int wait_status) {
  const int signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
  const int code = exit_status_of(wait_status);
  std::string reason;
  if (signal != 0)
    reason = "The program was ended by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ").";
  if (signal == 0 && code != 0) reason = "The program exited with status " + std::to_string(code) + ".";
  if (!asked_.empty() && asked_ == "time limit")
    reason = "Slurm's time limit was near, so the program was asked to stop." + (reason.empty() ? "" : " " + reason);
  else if (!asked_.empty())
    reason = "The program was asked to " + asked_ + "." + (reason.empty() ? "" : " " + reason);
  end(code == 0 ? "finished" : asked_.empty() ? "failed" : "stopped", code, reason);
}

void Keeper::end(const std::string& status, int code, const std::string& reason) {
  journal_->append({{"e", "end"}, {"t", now()}, {"status", status}, {"code", code}, {"reason", reason}});
}

// Runs a program to its end and writes its output to the journal.
int Keeper::run_child(Launch launch, bool is_program) {
  Pipe pipe;
  ::fcntl(pipe.read.get(), F_SETPIPE_SZ, 1 << 20);  // so that the program continues while a slow disk writes
  launch.output = launch.errors = pipe.write.get();
  is_program_ = is_program;
  child_.emplace(Process(launch), std::move(pipe.read), Descriptor(), held_patience);
  pipe.write.reset();
  if (is_program) {
    const ProcessIdentity program = process_identity(child_->process().pid());
    journal_->append({{"e", "program"}, {"t", now()}, {"pid", program.pid}, {"pid_start", program.start}});
  }
  const auto on_output = [this](int, std::string_view bytes) {
    if (waiting_.empty()) waiting_since_ = Clock::now();
    waiting_ += bytes;
    write_output(Clock::now());
  };
  while (!child_->is_over()) {
    child_->poll(waiting_.empty() ? 1000ms : 25ms, on_output, signals_.get());
    handle_signals();
    write_output(Clock::now());
    maintain(Clock::now());
  }
  if (!waiting_.empty()) journal_->append_output(waiting_);
  waiting_.clear();
  journal_->append_held_back();
  return child_->process().wait_status();
}

// Writes the output to the journal; an incomplete last line waits up to 0.1 s for its rest.
void Keeper::write_output(Clock::time_point now) {
  if (waiting_.empty()) return;
  const bool full = waiting_.size() >= OutputJournal::longest_output;
  if (!full && now - waiting_since_ < line_patience) return;
  const std::size_t line_end = waiting_.rfind('\n');
  const std::size_t size = line_end != std::string::npos ? line_end + 1 : full || half_line_ ? waiting_.size() : 0;
  journal_->append_output(std::string_view(waiting_).substr(0, size));
  waiting_.erase(0, size);
  half_line_ = size == 0;
  waiting_since_ = now;
}

void Keeper::maintain(Clock::time_point now) {
  if (now >= next_control_look_) {
    read_control();
    next_control_look_ = now + control_interval;
  }
  if (now - journal_->last_line() >= alive_interval) {
    Json line = {{"e", "alive"}, {"t", far::now()}};
    if (paused_) line["paused"] = true;
    journal_->append(line);
  }
  if (journal_->has_unwritten() && now >= next_write_) {
    journal_->write();
    if (journal_->has_unwritten()) next_write_ = now + 1s;
  }
  if (!journal_->is_complete() && now >= next_sync_) {
    journal_->sync();
    next_sync_ = Clock::now() + 1s;
  }
}

void Keeper::handle_signals() {
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    on_signal(static_cast<int>(info.ssi_signo));
  cancels_.remove_if([](Process& cancel) { return cancel.has_ended(); });
}

void Keeper::on_signal(int signal) {
  if (signal == SIGUSR2) read_control();
  for (const Meaning& meaning : meanings)
    if (meaning.received == signal) send(meaning);
}

void Keeper::send(const Meaning& meaning) {
  const bool ends = meaning.sent == SIGINT || meaning.sent == SIGTERM || meaning.sent == SIGKILL;
  if (ends && asked_.empty()) asked_ = meaning.name;
  if (!child_ || child_->process().has_ended()) return;
  if (!is_program_ && !ends) return;
  // The programs of a job's other nodes are Slurm's children, and srun keeps interrupts to itself.
  if (is_program_ && through_srun() && meaning.sent != SIGKILL && meaning.sent != SIGTERM) {
    try {
      cancels_.emplace_back(Launch{.command = {"scancel", signal_option(meaning.sent), job_}}).leave_alone();
    } catch (const std::system_error&) {  // no scancel on this node: srun itself gets the signal
      child_->process().kill_group(meaning.sent);
    }
  } else {
    child_->process().kill_group(meaning.sent);
  }
  if (ends && paused_) child_->process().kill_group(SIGCONT);
  const bool paused = meaning.sent == SIGSTOP || (paused_ && !ends && meaning.sent != SIGCONT);
  if (paused == paused_) return;
  paused_ = paused;
  journal_->append({{"e", "alive"}, {"t", now()}, {"paused", paused_}});
}

// Signals from a talker on another machine that shares the folder.
void Keeper::read_control() {
  const Descriptor control = folder_below(folder_.get(), "control");
  while (control) {
    const auto wish = read_below(control.get(), control_name(request_.number, next_control_), 100);
    if (!wish) return;
    ++next_control_;
    for (const Meaning& meaning : meanings)
      if (*wish == meaning.name) send(meaning);
  }
}

int fail(const std::string& sentence) {
  const std::string line = as_text({{"error", sentence}}) + "\n";
  [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, line.data(), line.size());
  return exit_failed;
}

}  // namespace

int keep(const std::string& path, std::int64_t number) {
  become_keeper({SIGPIPE, SIGHUP});
  close_all_but({});
  try {
    if (path.empty() || path[0] != '/') return fail("The run's folder must be an absolute path.");
    Descriptor folder = open_folder(path);
    if (!folder) throw refused(path, "cannot be opened", errno);
    if (number == 0) number = latest_request(folder.get());
    auto request = read_request(folder.get(), number);
    if (!request) return fail(path + " has no request.");
    return Keeper(path, std::move(folder), std::move(*request)).run();
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

}  // namespace stepladder::far
