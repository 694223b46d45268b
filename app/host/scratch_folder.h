// A folder for files that nobody needs after this process.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "storage/errors.h"

namespace stepladder {

// Readable for this user alone; removed with its content. Throws StorageError if it can't be created.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& name) {
    std::string path = (std::filesystem::temp_directory_path() / (name + "-XXXXXX")).string();
    if (!::mkdtemp(path.data())) throw StorageError(path + " cannot be made");
    path_ = path;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace stepladder
