// The writer thread: takes run events from a ring and writes them to the database in small transactions. No error is
// final: what could not be written is kept, in the ring, then in a file, and tried again until it is stored.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "storage/database/events/event_ring.h"
#include "storage/database/events/spill_file.h"
#include "storage/database/run_store.h"
#include "storage/records.h"
#include "storage/thread_safety.h"

namespace stepladder {

// The events that the database has not stored, although more than a second has passed, and the reason.
struct Unstored {
  std::string why;                // the last error; empty: nothing waits longer than usual
  double since = missing;         // unix seconds of the first failed attempt
  std::int64_t steps = 0;         // that wait
  std::filesystem::path kept_in;  // the file that has the older ones; empty: they are in memory
  std::int64_t refused = 0;       // steps that are lost, since memory and files were full
  std::string kept_apart;         // says which events belong to no run of the database, and which file has them
};

class Recorder {
 public:
  // Opens its own connection to `file` before it returns (throws StorageError), then starts its thread. `on_trouble` is
  // called on the writer thread when events have waited for a second because of an error, with its reason, and with an
  // empty one once they are all written. `on_request` is called there with the requests of other processes about runs
  // of this one, and `queue` for this process's runs, which are then published to other processes. Both happen about
  // twice a second while a run is training. When nobody has written to the file for some seconds, the thread folds its
  // log into it (Upkeep::fold_log), so that a copy of the file alone is complete.
  Recorder(const std::filesystem::path& file, std::function<void(const std::string& why)> on_trouble,
           std::function<void(RunId, const RunChange&)> on_request = {},
           std::function<std::vector<QueuedRun>()> queue = {});

  // Writes everything that was posted, then ends the thread. After 5 s of errors, or after `give_up`, leaves the rest
  // in a file for RunStore::close_dead_runs.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Any thread; takes a fraction of a microsecond and never waits for the writer. Steps are committed about a second
  // later, together; an event of another kind, and all before it, at once. Once they are posted, steps outlive a killed
  // process (event_ring.h).
  void post(const StepRecord& step) {
    if (!ring_.post(step)) [[unlikely]]
      refuse(step.run);
  }
  void post(const RunEvent& event);

  // Tries at once to commit everything posted before the call, or up to `until`, and again until `patience` is over.
  // Returns whether it is committed. Whoever calls it in a loop passes `until`: otherwise, on a disk that takes longer
  // than the next event, the loop never ends. Any thread but the writer's.
  bool flush(std::chrono::milliseconds patience = std::chrono::seconds(10)) { return flush(patience, posted()); }
  bool flush(std::chrono::milliseconds patience, const EventRing::Position& until);

  // The same without blocking: how far posting has got, and whether everything up to there is committed. Any thread.
  EventRing::Position posted() const { return ring_.posted(); }
  bool has_written(const EventRing::Position& position) const;

  // Events that are neither committed nor in a file. Whoever can wait before posting more should, if these are many.
  std::size_t waiting() const { return ring_.size(); }  // any thread

  Unstored unstored() const;  // any thread
  void give_up();             // the destructor tries only once more; any thread

 private:
  void write_until_closed();
  std::chrono::milliseconds pause_until_next(bool closing) REQUIRES(writer_thread_);
  bool is_due() REQUIRES(writer_thread_);
  bool write_everything() REQUIRES(writer_thread_);
  void write(std::vector<RunEvent>& events) REQUIRES(writer_thread_);
  void keep_apart(const std::vector<RunEvent>& events, const std::vector<RunId>& runs) REQUIRES(writer_thread_);
  void note_refused(std::vector<RunEvent>& events) REQUIRES(writer_thread_);
  void refuse(RunId run);
  void spill() REQUIRES(writer_thread_);
  void note_success() REQUIRES(writer_thread_);
  void note_failure(const std::string& why) REQUIRES(writer_thread_);
  void publish_trouble() REQUIRES(writer_thread_);
  void look_for_requests() REQUIRES(writer_thread_);
  bool is_idle() const REQUIRES(writer_thread_);
  void fold_log_when_idle() REQUIRES(writer_thread_);

  using Clock = std::chrono::steady_clock;

  OwnerThread writer_thread_;
  RunStore store_ GUARDED_BY(writer_thread_);
  const std::function<void(const std::string&)> on_trouble_;
  const std::function<void(RunId, const RunChange&)> on_request_;
  const std::function<std::vector<QueuedRun>()> queue_;
  std::vector<QueuedRun> told_queue_ GUARDED_BY(writer_thread_);
  EventRing ring_;  // its reading functions are the writer thread's
  SpillFile spill_ GUARDED_BY(writer_thread_);
  SpillFile apart_ GUARDED_BY(writer_thread_);  // events of runs that aren't in the database
  std::set<RunId> runs_apart_ GUARDED_BY(writer_thread_);
  std::set<RunId> under_way_ GUARDED_BY(writer_thread_);  // runs that have started and not ended
  std::vector<RunEvent> batch_ GUARDED_BY(writer_thread_);
  Unstored failing_ GUARDED_BY(writer_thread_);            // since the first failed attempt
  Clock::time_point empty_at_ GUARDED_BY(writer_thread_);  // when nothing waited; what waits is younger
  bool something_waits_ GUARDED_BY(writer_thread_) = false;
  Clock::time_point retry_at_ GUARDED_BY(writer_thread_);
  Clock::time_point last_spill_ GUARDED_BY(writer_thread_);
  Clock::time_point next_look_ GUARDED_BY(writer_thread_);
  Clock::time_point last_write_ GUARDED_BY(writer_thread_);  // to the file, by anybody
  std::int64_t seen_version_ GUARDED_BY(writer_thread_) = 0;
  bool is_folded_ GUARDED_BY(writer_thread_) = false;
  std::chrono::milliseconds pause_ GUARDED_BY(writer_thread_){};

  mutable Mutex mutex_;
  std::condition_variable_any written_;            // `stored_` has grown
  EventRing::Position stored_ GUARDED_BY(mutex_);  // committed up to there
  int flushing_ GUARDED_BY(mutex_) = 0;            // calls of flush that wait
  bool hurry_ GUARDED_BY(mutex_) = false;          // somebody began to wait
  bool closing_ GUARDED_BY(mutex_) = false;
  bool gives_up_ GUARDED_BY(mutex_) = false;
  Unstored unstored_ GUARDED_BY(mutex_);
  std::map<RunId, std::int64_t> refused_ GUARDED_BY(mutex_);  // steps that found no room

  std::thread writer_;  // last, so that it starts after everything else is constructed
};

}  // namespace stepladder
