#pragma once

#include "storage/errors.h"

namespace stepladder {

// Another process held the file for as long as the verb waits; the file is as it was, and the verb can be tried again.
struct FileIsLocked : StorageError {
  using StorageError::StorageError;
};

}  // namespace stepladder
