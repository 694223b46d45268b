// Writes the runs that this process trains as journals (docs/journal.md), so that another machine can follow them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/journal/journal_file.h"
#include "storage/database/events/event_ring.h"
#include "storage/importers/journal/run_events.h"
#include "storage/records.h"
#include "storage/thread_safety.h"

namespace stepladder {

// A folder of journals, a folder a run. Its own thread appends: what was posted is in the file a tenth of a second
// later and on the disk after a second. While the disk refuses, everything waits, in bounded memory, and is tried
// again.
class RunJournals {
 public:
  // Creates the folder, and starts the thread. Throws StorageError if it can't be written to.
  explicit RunJournals(const std::filesystem::path& folder);

  // Writes what was posted. Gives up after 10 s of errors, or at once after `give_up`.
  ~RunJournals();
  RunJournals(const RunJournals&) = delete;
  RunJournals& operator=(const RunJournals&) = delete;

  // Begins an attempt of a run that has been queued, before any of its events is posted. Its first line is on the disk
  // when this returns. Throws StorageError. One thread.
  void begin(const PlannedRun& planned);

  // Any thread; never waits. Events of runs that were not begun are ignored.
  void post(const StepRecord& step) {
    if (!ring_.post(step)) [[unlikely]]
      lose(step.run);
  }
  void post(const RunEvent& event);

  // Blocks until all that was posted, or all up to `until`, is on the disk, or `patience` is over; returns whether it
  // is. Any thread.
  bool flush(std::chrono::milliseconds patience) { return flush(patience, posted()); }
  bool flush(std::chrono::milliseconds patience, const EventRing::Position& until);
  EventRing::Position posted() const { return ring_.posted(); }

  // A sentence that says why lines wait to be written; empty if none do. Any thread.
  std::string trouble() const;
  void give_up();  // any thread

  const std::filesystem::path& folder() const { return folder_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Journal {
    JournalFile file;
    bool trains = false;  // then its file stays open
    bool ended = false;
  };

  std::filesystem::path folder_of(const Run& run);
  void lose(RunId run);
  void write_until_closed();
  void take_events() REQUIRES(writer_thread_);
  void take_begun() REQUIRES(writer_thread_);
  void add(const RunEvent& event) REQUIRES(writer_thread_);
  void say_alive() REQUIRES(writer_thread_);
  void write(bool sync_all) REQUIRES(writer_thread_);
  std::size_t kept_bytes() const REQUIRES(writer_thread_);
  void publish(const std::string& trouble) REQUIRES(writer_thread_);

  const std::filesystem::path folder_;
  std::map<std::string, std::filesystem::path> folders_;  // of known runs, by the end of their uid; begin's thread

  EventRing ring_;  // its reading functions are the writer thread's
  OwnerThread writer_thread_;
  // A run has several if it was queued again before the disk took the last lines of an earlier attempt.
  std::multimap<RunId, Journal> journals_ GUARDED_BY(writer_thread_);
  std::vector<RunEvent> events_ GUARDED_BY(writer_thread_);
  std::string failing_ GUARDED_BY(writer_thread_);  // why the last attempt to write failed
  Clock::time_point retry_at_ GUARDED_BY(writer_thread_);
  Clock::time_point synced_at_ GUARDED_BY(writer_thread_);
  Clock::time_point alive_at_ GUARDED_BY(writer_thread_);

  mutable Mutex mutex_;
  std::condition_variable_any on_disk_;
  std::vector<std::pair<RunId, JournalFile>> begun_ GUARDED_BY(mutex_);
  std::map<RunId, std::int64_t> lost_ GUARDED_BY(mutex_);  // events that found no room
  EventRing::Position stored_ GUARDED_BY(mutex_);          // on the disk up to there
  std::string trouble_ GUARDED_BY(mutex_);
  bool hurry_ GUARDED_BY(mutex_) = false;
  bool closing_ GUARDED_BY(mutex_) = false;
  bool gives_up_ GUARDED_BY(mutex_) = false;

  std::thread writer_;  // last, so that it starts after everything else is constructed
};

}  // namespace stepladder
