// Starts the workers of a run with posix_spawn and watches them on a thread of its own. The end of a worker's stderr is
// the sign that it has ended; the first failure kills all others. Pids are reaped under the mutex, so kill_all cannot
// hit a process that got the pid later.
#include "engine/processes/worker_processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "engine/others_watch.h"

namespace stepladder {
namespace {

// The running program or, in a test, the real one beside it.
std::string program() {
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe");
  return own.filename() == "stepladder" ? "/proc/self/exe" : (own.parent_path() / "stepladder").string();
}

// The store's descriptor in a worker.
constexpr int inherited_store = STDERR_FILENO + 1;

// A worker's placement, as variables.
std::vector<std::string> worker_environment(const Placement& rank0, int rank) {
  return {"RANK=" + std::to_string(rank),
          "WORLD_SIZE=" + std::to_string(rank0.world_size),
          "LOCAL_RANK=" + std::to_string(rank),
          "MASTER_ADDR=" + rank0.master_addr,
          "MASTER_PORT=" + std::to_string(rank0.master_port),
          "TORCHELASTIC_USE_AGENT_STORE=False",
          "TORCHELASTIC_RESTART_COUNT=" + rank0.attempt,
          std::string(store_descriptor_variable) + "=" + std::to_string(inherited_store),
          std::string(worker_parent_variable) + "=" + std::to_string(::getpid())};
}

// The last line of a worker's stderr, without the program's name.
std::string last_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  std::string line(text.substr(text.rfind('\n') + 1));
  constexpr std::string_view name = "stepladder: ";
  return line.starts_with(name) ? line.substr(name.size()) : line;
}

// Describes a worker's failure; nothing if it ended well or only lost contact.
std::optional<std::string> complaint(int rank, int status, std::string_view said) {
  const std::string name = "rank " + std::to_string(rank);
  if (WIFSIGNALED(status)) return name + " was killed by signal " + std::to_string(WTERMSIG(status));
  const std::string line = last_line(said);
  if (WEXITSTATUS(status) == 0 || line.starts_with(lost_contact)) return std::nullopt;
  return name + " failed" + (line.empty() ? " with exit status " + std::to_string(WEXITSTATUS(status)) : ": " + line);
}

}  // namespace

WorkerProcesses::WorkerProcesses(const Placement& rank0, const std::string& recipe_json) {
  for (int rank = 1; rank < rank0.world_size; ++rank) workers_.emplace_back().rank = rank;
  try {
    for (Worker& worker : workers_) start(worker, rank0, recipe_json);
  } catch (...) {
    {
      const MutexLock lock(mutex_);
      kill_all();
    }
    watch();
    throw;
  }
  watcher_ = std::jthread([this] {
    leave_run_threads("workers");
    watch();
  });
}

WorkerProcesses::~WorkerProcesses() {
  const MutexLock lock(mutex_);
  kill_all();
}

void WorkerProcesses::start(Worker& worker, const Placement& rank0, const std::string& recipe_json) try {
  Pipe input, errors;
  // Can be written before anybody reads, since a recipe is far smaller than a pipe.
  if (::write(input.write.get(), recipe_json.data(), recipe_json.size()) != static_cast<ssize_t>(recipe_json.size()))
    throw std::system_error(errno, std::generic_category());
  worker.process.emplace(Launch{.command = {"stepladder", worker_command},
                                .program = program(),
                                .environment = worker_environment(rank0, worker.rank),
                                .input = input.read.get(),
                                .errors = errors.write.get(),
                                .fourth = rank0.store_descriptor,
                                .group = Launch::Group::ours,
                                .ignored_signals = ignored_signals()});
  worker.errors = std::move(errors.read);
} catch (const std::system_error& error) {
  throw std::runtime_error("rank " + std::to_string(worker.rank) + " cannot be started: " + error.code().message());
}

// A worker's stderr closes when it ends, so this needs no signal handler and no polling.
void WorkerProcesses::watch() {
  while (true) {
    std::vector<pollfd> waiting;
    std::vector<Worker*> of;
    for (Worker& worker : workers_) {
      if (!worker.process || worker.ended) continue;
      waiting.push_back({.fd = worker.errors.get(), .events = POLLIN, .revents = 0});
      of.push_back(&worker);
    }
    if (waiting.empty()) return;
    if (::poll(waiting.data(), waiting.size(), -1) < 0) continue;  // interrupted by a signal
    for (std::size_t i = 0; i < waiting.size(); ++i)
      if (waiting[i].revents != 0) read_errors(*of[i]);
  }
}

void WorkerProcesses::read_errors(Worker& worker) {
  std::array<char, 4096> part{};
  const ssize_t size = ::read(worker.errors.get(), part.data(), part.size());
  if (size < 0 && errno == EINTR) return;
  if (size <= 0) return reap(worker);
  worker.said.append(part.data(), static_cast<std::size_t>(size));
  constexpr std::size_t kept = 16'384;
  if (worker.said.size() > kept) worker.said.erase(0, worker.said.size() - kept);
}

void WorkerProcesses::reap(Worker& worker) {
  // Waits without reaping: until `ended` is set the pid stays the worker's, so kill_all cannot hit another process.
  siginfo_t ignored{};
  while (::waitid(P_PID, static_cast<id_t>(worker.process->pid()), &ignored, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  const MutexLock lock(mutex_);
  worker.process->wait();
  worker.errors.reset();
  worker.ended = true;
  if (!failure_) {
    failure_ = complaint(worker.rank, worker.process->wait_status(), worker.said);
    if (failure_) kill_all();
  }
  changed_.notify_all();
}

void WorkerProcesses::kill_all() {
  for (Worker& worker : workers_)
    if (worker.process && !worker.ended) worker.process->kill(SIGKILL);
}

bool WorkerProcesses::all_ended() const {
  return std::ranges::all_of(workers_, &Worker::ended);
}

std::optional<std::string> WorkerProcesses::failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

bool WorkerProcesses::wait_all_ended(std::chrono::milliseconds patience) {
  MutexLock lock(mutex_);
  return changed_.wait_for(lock, patience, [this]() REQUIRES(mutex_) { return all_ended(); });
}

}  // namespace stepladder
