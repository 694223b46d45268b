// The writer thread: takes run events from a mailbox and puts them into the database in small transactions.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "storage/database/run_store.h"
#include "storage/mailbox.h"
#include "storage/records.h"

namespace stepladder {

class Recorder {
 public:
  // Opens its own connection to `file` before it returns (throws StorageError), then starts its thread.
  // `on_error` is called once, on the writer thread, with the first error; from then on nothing is written.
  // `on_request` is called there with what other processes ask of this one's runs; while one is under way, that is
  // looked for about twice a second.
  Recorder(const std::filesystem::path& file, std::function<void(const std::string&)> on_error,
           std::function<void(RunId, RunRequest)> on_request = {});

  // Writes what has been posted, then ends the thread.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Any thread; never blocks on the disk. What was posted is committed within 0.1 s.
  void post(RunEvent event);

  // Blocks until everything posted before the call is committed (or the recorder has failed).
  void flush();

  // The first error, or empty. Any thread.
  std::string error() const;

 private:
  void write_until_closed();
  void write(const std::vector<RunEvent>& events);
  void look_for_requests();

  RunStore store_;  // the writer thread's own from the moment it starts
  const std::function<void(const std::string&)> on_error_;
  const std::function<void(RunId, RunRequest)> on_request_;
  int under_way_ = 0;  // runs that have started and not ended; the writer thread's
  Mailbox<RunEvent> events_;
  std::atomic<std::uint64_t> posted_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable hurried_;  // `hurry_` has become true
  std::condition_variable written_;  // `handled_` has grown
  std::uint64_t handled_ = 0;        // guarded by mutex_, as are the two below
  bool hurry_ = false;               // somebody waits: gather no longer
  std::string error_;

  std::thread writer_;  // last, so that it starts when all else is there
};

}  // namespace stepladder
