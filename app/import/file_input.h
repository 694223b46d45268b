// A file or standard input as an importer's input.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "storage/importers/importer.h"

namespace stepladder {

// Reads in pieces of 256 KiB. Blocks if the input is a pipe. One thread.
class FileInput : public ImportInput {
 public:
  // Throws ImportError if the file can't be opened. The second form reads `descriptor` and doesn't close it.
  explicit FileInput(const std::filesystem::path& path);
  explicit FileInput(int descriptor);
  ~FileInput() override;
  FileInput(const FileInput&) = delete;
  FileInput& operator=(const FileInput&) = delete;

  std::string_view head() override;
  std::string_view next() override;
  const std::filesystem::path& path() const override { return path_; }

 private:
  std::string_view read_piece(std::size_t least);

  std::filesystem::path path_;
  int descriptor_;
  bool owned_;
  std::vector<char> buffer_;
  std::size_t filled_ = 0;
  std::string head_;
  bool head_read_ = false;
  bool first_piece_waits_ = false;  // buffer_ holds the piece with the head; next() hasn't returned it yet
};

}  // namespace stepladder
