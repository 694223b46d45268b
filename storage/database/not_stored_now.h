#pragma once

#include "storage/errors.h"

namespace stepladder {

// The file can't be read or written now, as on a full disk. It is as it was, and the verb can be tried again.
struct NotStoredNow : StorageError {
  using StorageError::StorageError;
};

// Another process held the file for as long as the verb waits.
struct FileIsLocked : NotStoredNow {
  using NotStoredNow::NotStoredNow;
};

}  // namespace stepladder
