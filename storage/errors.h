#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
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

}  // namespace stepladder
