// The output of a watched program on its way to the database. The keeper (app/import/keeper.h) appends it to a file
// beside the database and a tracker reads it from there, so the program outlives its tracker, and another tracker can
// continue. Both files are readable for their owner only, and are removed once the output is recorded.
//
//   FILE.watch/run-12.out    what the program printed, in the order of printing
//   FILE.watch/run-12.state  SpoolState, which both processes map
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "storage/database/process.h"
#include "storage/importers/importer.h"
#include "storage/own_folder.h"

namespace stepladder {

// A process in shared memory. The keeper writes the program's before `ended`, and the tracker the keeper's.
struct SharedIdentity {
  std::int64_t pid = 0;
  std::int64_t start = 0;
  char boot[48] = {};

  void set(const ProcessIdentity& process);
  ProcessIdentity get() const { return {.pid = pid, .start = start, .boot = {boot, ::strnlen(boot, sizeof boot)}}; }
};

struct SpoolState {
  static constexpr std::uint64_t current_format = 0x3168637461577453;  // "StWatch1"

  std::uint64_t format = 0;
  SharedIdentity keeper;
  SharedIdentity program;
  // By the keeper.
  std::atomic<std::int32_t> ended = 0;         // 1: nothing more will be appended
  std::atomic<std::int32_t> wait_status = 0;   // as waitpid gives it
  std::atomic<std::int32_t> output_error = 0;  // the errno that kept it from passing the output on; 0: none
  std::atomic<std::int64_t> lost = 0;          // bytes that could not be appended: a full disk, or too much for one
  // By the tracker.
  std::atomic<std::int64_t> taken = 0;  // bytes of the output that it has read
  std::atomic<std::int64_t> freed = 0;  // where the freed part of the output ends, which begins at Spool::head; 0: none
  char options[3072] = {};              // the user's ImportOptions as JSON
};

// Not thread-safe: one thread. Throws StorageError if the files can't be made or read.
class Spool {
 public:
  // Bytes at the start of the output that are never freed: they contain the facts about the run.
  static constexpr std::int64_t head = 1 << 20;
  // An output of this size is kept whole until it is recorded, so that another tracker can read it from its start.
  static constexpr std::int64_t kept_whole = 64 << 20;

  // For a run without a number yet, before the program starts. Throws UsageError if the options are too long.
  Spool(const std::filesystem::path& database, const ImportOptions& options);
  ~Spool();
  Spool(Spool&& other) noexcept;
  Spool& operator=(Spool&&) = delete;

  // Another tracker's output; nothing if there is none. Throws UsageError if that tracker is still there. The files may
  // have come with the project from elsewhere: a process that they name counts only if it has the output open.
  static std::optional<Spool> open(const std::filesystem::path& database, std::int64_t run);

  // Names the files, and holds them for this process until it exits. Call after the keeper was started.
  void belongs_to(std::int64_t run);

  SpoolState& state() const { return *state_; }
  int output() const { return output_.get(); }  // the descriptor, for appending and pread
  std::int64_t size() const;
  ImportOptions options() const;

  // Frees the bytes between the head and `end`, if there are enough of them. Other trackers can't read them again.
  void free_until(std::int64_t end);

  void remove();

 private:
  struct Name {
    std::string text;
  };
  Spool(const std::filesystem::path& database, Name name);
  Descriptor open_part(const char* ending, int flags) const;
  void map_state(int descriptor);
  void remove_files() const;
  [[noreturn]] void fail(const char* ending, const char* what) const;

  std::filesystem::path path_;  // of the folder
  std::string name_;            // of the files in it, without their endings
  Descriptor folder_;
  Descriptor output_;
  Descriptor held_;  // holds the lock that shows others that a tracker is there
  SpoolState* state_ = nullptr;
};

// A run whose output nobody records at the moment.
struct UnreadOutput {
  std::int64_t run = 0;
  bool is_running = false;  // its program is running
};
std::vector<UnreadOutput> unread_outputs(const std::filesystem::path& database);

// Removes the files of runs that don't exist (`exists` returns false) and whose program has ended.
void remove_unread_outputs(const std::filesystem::path& database, const std::function<bool(std::int64_t)>& exists);

}  // namespace stepladder
