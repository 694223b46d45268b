// A file that is read at any offset, and big-endian numbers in it. Inside storage/ only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "storage/own_folder.h"

namespace stepladder {

class ByteFile {
 public:
  explicit ByteFile(const std::filesystem::path& file);  // throws StorageError

  std::int64_t size() const { return size_; }  // when it was opened

  // Exactly `bytes`: zeros where the file ends or the disk fails to read.
  std::string read(std::int64_t offset, std::int64_t bytes);
  std::int64_t unreadable_bytes() const { return unreadable_; }  // where the disk has failed so far

  int descriptor() const { return descriptor_.get(); }

 private:
  Descriptor descriptor_;
  std::int64_t size_ = 0;
  std::int64_t unreadable_ = 0;
};

inline std::uint32_t big_endian_u32(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

inline std::uint32_t big_endian_u16(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at]) << 8 |
                                    static_cast<unsigned char>(bytes[at + 1]));
}

}  // namespace stepladder
