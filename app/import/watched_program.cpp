// The tracker's side of `watch`: passes signals to the program, reads its output from the spool, and frees what is
// recorded. Signals go through pidfds, so a reused pid never gets one, and only to a process whose parent is the
// keeper.
#include "app/import/watched_program.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "app/import/keeper.h"
#include "app/import/open_files.h"
#include "storage/errors.h"

namespace stepladder {
namespace {

constexpr int look_at_keeper_ms = 30;
constexpr std::int64_t between_marks = 1 << 20;

// A handle of the program, to which signals are passed on. Not a pid, which may be another process's by now.
std::atomic<int> program{-1};
std::atomic<bool> in_our_job{true};  // the terminal sends its signals to the program as well
std::atomic<int> unclaimed{0};

Descriptor handle_of(std::int64_t pid) {
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0)));
}

void pass_on(int signal, siginfo_t* info, void*) {
  const int saved = errno;
  const int handle = program.load();
  if (handle < 0)
    ++unclaimed;
  else if (info->si_code != SI_KERNEL || !in_our_job.load())
    ::syscall(SYS_pidfd_send_signal, handle, signal, nullptr, 0);
  errno = saved;
}

}  // namespace

void pass_signals_on() {
  struct sigaction action = {};
  action.sa_sigaction = pass_on;  // without SA_RESTART: a blocking read returns
  action.sa_flags = SA_SIGINFO;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction before = {};
    ::sigaction(signal, nullptr, &before);
    const bool is_nohup = signal == SIGHUP && before.sa_handler == SIG_IGN;
    if (!is_nohup) ::sigaction(signal, &action, nullptr);
  }
}

int signals_without_program() {
  return unclaimed;
}

WatchedProgram::WatchedProgram(const std::vector<std::string>& command, Spool& spool) : spool_(spool) {
  try {
    const pid_t keeper = start_keeper(command, spool);
    keeper_ = process_identity(keeper);
    spool.state().keeper.set(keeper_);
  } catch (...) {
    spool.remove();
    throw;
  }
  take_signals(true);
}

WatchedProgram::WatchedProgram(Spool& spool) : spool_(spool), keeper_(spool.state().keeper.get()) {
  take_signals(false);
}

void WatchedProgram::take_signals(bool ours) {
  in_our_job = ours;
  keeper_handle_ = handle_of(keeper_.pid);
  if (!is_alive(keeper_)) keeper_handle_.reset();  // it was the number of another process
  // Only a child of the keeper gets signals: a pid that a file names isn't enough.
  const ProcessIdentity watched = spool_.state().program.get();
  Descriptor handle = keeper_handle_ ? handle_of(watched.pid) : Descriptor();
  if (!handle || !is_alive(watched) || parent_of(watched.pid) != keeper_.pid) return;
  program = handle.release();
  program_ = watched;
}

WatchedProgram::~WatchedProgram() {
  program = -1;  // its handle stays open, since a signal may be using it
}

bool WatchedProgram::has_ended() {
  const bool ended = spool_.state().ended || !is_alive(keeper_);
  if (ended) program = -1;
  return ended;
}

std::size_t WatchedProgram::read(std::vector<char>& piece) {
  while (true) {
    const bool ended = has_ended();  // before the file: what is appended later is not missed
    std::size_t most = piece.size();
    if (const std::int64_t freed = spool_.state().freed; freed > read_) {
      // Another tracker has read what was between.
      if (read_ >= Spool::head) {
        read_ = freed;
        jumped_ = true;
      } else {
        most = std::min(most, static_cast<std::size_t>(Spool::head - read_));
      }
    }
    const ssize_t count = ::pread(spool_.output(), piece.data(), most, read_);
    if (count < 0 && errno != EINTR) throw StorageError(std::string("the output cannot be read: ") + strerror(errno));
    if (count > 0) {
      read_ += count;
      spool_.state().taken = std::max<std::int64_t>(spool_.state().taken, read_);
      return static_cast<std::size_t>(count);
    }
    if (ended) return 0;
    wait_for_more();
  }
}

void WatchedProgram::wait_for_more() {
  pollfd keeper{.fd = keeper_handle_.get(), .events = POLLIN, .revents = 0};
  ::poll(&keeper, 1, look_at_keeper_ms);
}

bool WatchedProgram::jumps() {
  return std::exchange(jumped_, false);
}

void WatchedProgram::mark(std::function<bool()> is_recorded) {
  if (marks_.empty() || read_ - marks_.back().offset >= between_marks)
    marks_.push_back({read_, std::move(is_recorded)});
}

void WatchedProgram::free_recorded() {
  std::int64_t done = -1;
  for (; !marks_.empty() && marks_.front().is_recorded(); marks_.pop_front()) done = marks_.front().offset;
  // An importer may still hold a step of the last lines.
  if (done > between_marks) spool_.free_until(done - between_marks);
}

ProgramEnd WatchedProgram::end() const {
  return {.known = spool_.state().ended != 0, .status = spool_.state().wait_status};
}

}  // namespace stepladder
