// A folder that one process works on at a time, with files that are written whole.
#pragma once

#include <filesystem>
#include <string>

namespace stepladder {

// Holds a folder for this process until it ends or the object does. Processes that it starts don't inherit it. Throws
// UsageError if another process holds it, StorageError if it cannot be written.
class HeldFolder {
 public:
  explicit HeldFolder(const std::filesystem::path& folder);
  ~HeldFolder();
  HeldFolder(const HeldFolder&) = delete;
  HeldFolder& operator=(const HeldFolder&) = delete;

 private:
  int descriptor_ = -1;
};

// Throws StorageError.
void make_folder(const std::filesystem::path& folder);

// The file appears under its name only when it is complete and on the disk. Throws DataError.
void write_whole(const std::filesystem::path& file, const std::string& text);

}  // namespace stepladder
