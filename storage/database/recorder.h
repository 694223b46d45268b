// The writer thread: takes run events from a mailbox and writes them to the database in small transactions.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "storage/database/run_store.h"
#include "storage/mailbox.h"
#include "storage/records.h"
#include "storage/thread_safety.h"

namespace stepladder {

class Recorder {
 public:
  // Opens its own connection to `file` before it returns (throws StorageError), then starts its thread.
  // `on_error` is called once, on the writer thread, with the first error; nothing is written after it.
  // `on_request` is called there with the requests of other processes about runs of this one. The writer looks for them
  // about twice a second while a run is training.
  Recorder(const std::filesystem::path& file, std::function<void(const std::string&)> on_error,
           std::function<void(RunId, RunRequest)> on_request = {});

  // Writes everything that was posted, then ends the thread.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Any thread; never blocks on the disk. The event is committed within 0.1 s.
  void post(RunEvent event);

  // Blocks until everything posted before the call is committed (or the recorder has failed).
  void flush();

  // The same without blocking: how many events were posted, and whether that many are committed (or the recorder has
  // failed). Any thread.
  std::uint64_t posted() const { return posted_.load(); }
  bool has_written(std::uint64_t count) const;

  // The first error, or empty. Any thread.
  std::string error() const;

 private:
  void write_until_closed();
  void write(const std::vector<RunEvent>& events) REQUIRES(writer_thread_);
  void look_for_requests() REQUIRES(writer_thread_);

  OwnerThread writer_thread_;
  RunStore store_ GUARDED_BY(writer_thread_);
  const std::function<void(const std::string&)> on_error_;
  const std::function<void(RunId, RunRequest)> on_request_;
  std::set<RunId> under_way_ GUARDED_BY(writer_thread_);  // runs that have started and not ended
  Mailbox<RunEvent> events_;
  std::atomic<std::uint64_t> posted_ = 0;

  mutable Mutex mutex_;
  std::condition_variable_any hurried_;  // `hurry_` has become true
  std::condition_variable_any written_;  // `handled_` has grown
  std::uint64_t handled_ GUARDED_BY(mutex_) = 0;
  bool hurry_ GUARDED_BY(mutex_) = false;  // somebody waits, so the writer gathers no more events
  std::string error_ GUARDED_BY(mutex_);

  std::thread writer_;  // last, so that it starts after everything else is constructed
};

}  // namespace stepladder
