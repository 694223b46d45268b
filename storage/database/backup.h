// Complete copies of a project file, made while others write to it. The functions are for storage/ only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

namespace stepladder {

class Database;

// Writes the state that the file has now, including its log, as one file that only its owner may read and that is on
// the disk when this returns. Takes no write lock. Until it is complete it is called OUT.part. Throws StorageError if
// `out` exists or can't be written.
void back_up(Database& database, const std::filesystem::path& out);

// Throws StorageError if there is such a file, link or folder.
void refuse_existing(const std::filesystem::path& out);

// Backs up a file of this version before the next migrations: if it has runs, writes it to `FILE.before-N`, N being the
// first of them. Others who would write it wait as long as the result is held: until the version is another. Throws
// MigrationError.
std::shared_ptr<const void> back_up_before_migration(Database& database, std::int64_t version);

struct FileContents {
  std::int64_t bytes = 0;
  std::int64_t runs = 0;
  std::int64_t steps = 0;
};
FileContents contents_of(const std::filesystem::path& backup);

}  // namespace stepladder
