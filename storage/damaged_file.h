// The error for a project file of which a part can no longer be read.
#pragma once

#include <filesystem>
#include <string>

#include "storage/errors.h"

namespace stepladder {

// Caught separately only to name the remedy: the readable part can be rescued (storage/database/rescue/rescue.h).
struct DamagedFile : StorageError {
  DamagedFile(std::filesystem::path damaged, const std::string& sentence)
      : StorageError(sentence), file(std::move(damaged)) {}

  std::filesystem::path file;
};

}  // namespace stepladder
