// Reads an input in the sizes that a binary format needs, independent of the input's pieces.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/importers/importer.h"
#include "storage/regular_file.h"

namespace stepladder {

class ByteStream {
 public:
  // `offset`: of the input's first byte in its file.
  explicit ByteStream(ImportInput& input, std::uint64_t offset = 0) : input_(input), offset_(offset) {}

  // The next `size` bytes, fewer only if the input ends; valid until the next call. Memory grows with the bytes that
  // exist rather than with `size`.
  std::string_view take(std::size_t size);

  // Skips `size` bytes; false if there were fewer.
  bool skip(std::uint64_t size);

  std::uint64_t offset() const { return offset_; }  // of the next byte

 private:
  bool refill();  // the rest of the piece is empty: false at the end of the input

  ImportInput& input_;
  std::string_view piece_;
  std::string kept_;  // bytes that span pieces
  std::uint64_t offset_;
};

// A file read in pieces of 64 KiB, from `begin` on. Throws ImportError if it cannot be opened.
class StoreFile : public ImportInput {
 public:
  explicit StoreFile(std::filesystem::path path);
  StoreFile(const RegularFile& file, std::filesystem::path path, std::uint64_t begin);
  std::string_view head() override { return buffer_; }
  std::string_view next() override;
  const std::filesystem::path& path() const override { return path_; }

 private:
  std::string read_piece();

  std::filesystem::path path_;
  std::unique_ptr<RegularFile> owned_;
  const RegularFile& file_;
  std::int64_t next_ = 0;
  std::string buffer_;  // the head, until the rest is read
  std::string following_;
  bool head_given_ = false;
};

}  // namespace stepladder
