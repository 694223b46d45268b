// Identifies the owner of a ring's or a spill file's events: the database that they belong to and the process that owns
// their runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "storage/database/process.h"

namespace stepladder {

// One file on this machine. A file that is made under the same name later differs, even if it gets the same inode.
struct FileIdentity {
  std::int64_t device = 0;
  std::int64_t inode = 0;
  std::int64_t born_ns = 0;  // 0: the volume doesn't say
  bool operator==(const FileIdentity&) const = default;
};
std::optional<FileIdentity> identity_of(const std::filesystem::path& file);  // nullopt if it cannot be read

struct EventOrigin {
  std::string database;  // absolute
  FileIdentity file;
  ProcessIdentity process;
  std::string why;  // what was wrong with the database; empty: nothing
};
EventOrigin origin_of_this_process(const std::filesystem::path& database);

std::string to_bytes(const EventOrigin& origin);
std::optional<EventOrigin> origin_from(std::string_view bytes);  // nullopt if these aren't an origin's bytes

// Locks a ring or a spill file against everybody else. Processes that only look for its owner share its lock for some
// milliseconds, so this waits for them, a second at most. False if another process keeps it.
bool lock_alone(int descriptor);

// "1234-56789-1": of this process, and different at every call.
std::string unique_file_stem();

}  // namespace stepladder
