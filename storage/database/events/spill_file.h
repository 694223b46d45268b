// A file for events that the database doesn't take: a header that names their origin, then records (event_bytes.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/database/events/event_origin.h"
#include "storage/own_folder.h"
#include "storage/records.h"

namespace stepladder {

// The folders in which spill files of a database are looked for, in the order in which they are tried: beside it, and
// in the user's cache.
std::vector<std::filesystem::path> spill_folders(const std::filesystem::path& database);

// The origin in a spill file's beginning; nullopt if it isn't one of this version. Any bytes may be passed. `used`: its
// size.
std::optional<EventOrigin> spill_header(std::string_view bytes, std::size_t& used);

// Used by one thread at a time. Nothing throws: what fails returns false.
class SpillFile {
 public:
  // `kind` distinguishes files of one process. Nothing is written before the first append.
  SpillFile(EventOrigin origin, std::string kind) : origin_(std::move(origin)), kind_(std::move(kind)) {}
  ~SpillFile();  // keeps the file if it has events
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  // Appends events, all of them or none; they are on the disk when it returns. `why`: what is wrong with the database,
  // for the header of a new file.
  bool append(std::span<const RunEvent> events, const std::string& why);

  // Reads the oldest events, at most `most`; `forget` drops those that were read last, and the file with the last of
  // them.
  bool read(std::vector<RunEvent>& events, std::size_t most);
  void forget();

  bool empty() const { return events_ == 0; }
  std::int64_t steps() const { return steps_; }
  const std::filesystem::path& file() const { return file_; }  // empty if there is none

 private:
  bool create(const std::string& why, std::size_t first_folder);
  void remove();

  EventOrigin origin_;
  const std::string kind_;
  std::filesystem::path file_;
  Descriptor descriptor_;  // locked while this process lives
  std::int64_t end_ = 0;
  std::int64_t begin_ = 0;  // of the first event that isn't forgotten
  std::int64_t events_ = 0;
  std::int64_t steps_ = 0;
  std::size_t read_bytes_ = 0;
  std::int64_t read_events_ = 0;
  std::int64_t read_steps_ = 0;
};

}  // namespace stepladder
