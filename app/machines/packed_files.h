// Files packed to be sent to another machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

namespace stepladder {

// Its archive is a temporary file that lives as long as the object. The functions throw std::runtime_error if a tool
// (tar, git) fails.
class PackedFiles {
 public:
  // Packs these files of the folder; each name ends in a zero byte. Throws, and names the largest file, if they have
  // more than `most_bytes`; 0: no limit.
  static PackedFiles of(const std::filesystem::path& folder, const std::string& names, std::uintmax_t most_bytes = 0);

  // The git checkout that the current folder is in, as it is now: what git tracks, changed or not, and new files that
  // it doesn't ignore. `most_bytes` as above.
  static PackedFiles working_tree(std::uintmax_t most_bytes = 100u << 20);

  PackedFiles(PackedFiles&& other) noexcept
      : archive_(std::exchange(other.archive_, {})), description_(std::move(other.description_)) {}
  PackedFiles& operator=(PackedFiles&&) = delete;
  ~PackedFiles();

  const std::filesystem::path& archive() const { return archive_; }  // a tar.gz
  // JSON of a working tree: commit, branch, folder (in the checkout), files, bytes, patch, patch_is_cut.
  const std::string& description() const { return description_; }

 private:
  PackedFiles() = default;
  std::filesystem::path archive_;
  std::string description_;
};

}  // namespace stepladder
