// A journal's file (docs/journal.md) while its only writer appends to it: a run of Stepladder's own, or a keeper.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "storage/own_folder.h"

namespace stepladder {

// Keeps the bytes that the disk may lack, and writes them again at the same place after an error, so a disk that
// refuses them never stops the caller. Used by one thread at a time. Only `create` throws.
class JournalFile {
 public:
  // Creates the file; nothing if it exists. Throws StorageError.
  static std::optional<JournalFile> create(const std::filesystem::path& path);
  // `file` is new and open for writing.
  JournalFile(Descriptor file, std::filesystem::path path) : file_(std::move(file)), path_(std::move(path)) {}

  void add(std::string_view lines) { bytes_ += lines; }

  // Appends what isn't written; makes sure that what is written is on the disk. Each returns why it failed, or an empty
  // text; then a later call tries again.
  std::string write();
  std::string sync();

  std::size_t kept() const { return bytes_.size(); }  // bytes that the disk may lack
  bool is_complete() const { return bytes_.empty(); }
  bool has_unwritten() const { return written_ < bytes_.size(); }

  // Closes it until it is written to again, since a process may have few files open. What is kept stays.
  void rest() { file_.reset(); }

 private:
  std::string open_again();

  Descriptor file_;
  std::filesystem::path path_;
  std::string bytes_;         // from `synced_` on: only what the disk has for sure is given up
  std::uint64_t synced_ = 0;  // the file's bytes that are on the disk
  std::size_t written_ = 0;   // of `bytes_`
};

}  // namespace stepladder
