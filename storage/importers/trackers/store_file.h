// A file of another tracker's store as an input, for readers of whole folders and of files that grow.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "storage/importers/importer.h"
#include "storage/regular_file.h"

namespace stepladder {

// Reads in pieces of 64 KiB, from `begin` on. Throws ImportError if the file cannot be opened or read to its end.
class StoreFile : public ImportInput {
 public:
  explicit StoreFile(std::filesystem::path path);
  StoreFile(const RegularFile& file, std::filesystem::path path, std::uint64_t begin);
  std::string_view head() override { return head_; }
  std::string_view next() override;
  const std::filesystem::path& path() const override { return path_; }

 private:
  std::string read_piece();

  std::filesystem::path path_;
  std::unique_ptr<RegularFile> owned_;
  const RegularFile& file_;
  std::int64_t next_ = 0;
  std::string head_;
  std::string following_;
  bool head_given_ = false;
};

}  // namespace stepladder
