#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace stepladder {

// The file could not be opened, read or written. what() is one sentence that names the file and the cause:
// not a database, written by a newer version, read-only, no space left, damaged.
struct StorageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A file of an older version can't be brought up to date now; it is as it was.
struct MigrationError : StorageError {
  using StorageError::StorageError;
};

// The run isn't in the file: another process has permanently deleted it, or the file is another one by now.
struct MissingRun : StorageError {
  using StorageError::StorageError;
};

// A part of a project file can no longer be read. Caught separately only to name the remedy: the readable part can be
// rescued (storage/database/rescue/rescue.h).
struct DamagedFile : StorageError {
  DamagedFile(std::filesystem::path damaged, const std::string& sentence)
      : StorageError(sentence), file(std::move(damaged)) {}

  std::filesystem::path file;
};

// what(), but the standard library's own sentence about a file ("filesystem error: status: Permission denied [...]")
// becomes one that begins with the file and says why.
inline std::string error_text(const std::exception& error) {
  const auto* const of_file = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
  if (!of_file) return error.what();
  const std::filesystem::path& file = of_file->path2().empty() ? of_file->path1() : of_file->path2();
  return file.string() + " cannot be used: " + of_file->code().message();
}

// The number of the line that the byte belongs to, for parsers that report only the byte.
inline std::int64_t line_at(std::string_view text, std::size_t byte) {
  return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(text.size(), byte)), '\n');
}

}  // namespace stepladder
