// A journal's file (docs/journal.md) while its only writer appends to it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace stepladder {

// Keeps the bytes that the disk may lack, and writes them again at the same place after an error. Used by one thread at
// a time. Only `create` throws.
class JournalFile {
 public:
  // Creates the file; nothing if it exists. Throws StorageError.
  static std::optional<JournalFile> create(const std::filesystem::path& path);
  JournalFile(JournalFile&& other) noexcept;
  JournalFile& operator=(JournalFile&& other) noexcept;
  ~JournalFile();

  void add(std::string_view lines) { bytes_ += lines; }

  // Appends what isn't written; makes sure that what is written is on the disk. Each returns why it failed, or an empty
  // text; then a later call tries again.
  std::string write();
  std::string sync();

  std::size_t kept() const { return bytes_.size(); }  // bytes that the disk may lack
  bool is_complete() const { return bytes_.empty(); }
  const std::filesystem::path& path() const { return path_; }

  // Closes it until it is written to again, since a process may have few files open. What is kept stays.
  void rest();

 private:
  JournalFile(std::filesystem::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  std::string open_again();

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::string bytes_;         // from `synced_` on
  std::uint64_t synced_ = 0;  // the file's bytes that are on the disk
  std::uint64_t written_ = 0;
};

}  // namespace stepladder
