#pragma once

#include <stdexcept>

namespace stepladder {

// The file could not be opened, read or written. what() is one sentence that names the file and the cause:
// not a database, written by a newer version, read-only, no space left, damaged.
struct StorageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace stepladder
