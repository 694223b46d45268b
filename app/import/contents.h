// Recognises files that were imported before, by their content and not by their name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "storage/records.h"

namespace stepladder {

class RunStore;

// Hashes bytes as they are read: in pieces of any size, with the same result. Not cryptographic.
class ContentHash {
 public:
  void take(std::string_view piece);
  std::string text() const;  // "1234-" (bytes) and 16 hexadecimal digits

 private:
  void mix(std::uint64_t word);

  std::uint64_t hash_ = 0x9e3779b97f4a7c15;
  std::uint64_t word_ = 0;  // bytes that don't fill eight yet
  std::uint64_t bytes_ = 0;
};

// The bytes of a file (with a database's log, FILE-wal) or of all files in a folder; 0 if they can't be read.
std::uint64_t content_bytes(const std::filesystem::path& path);

// The hash of the same, with the names of a folder's files. Empty if it can't be read.
std::string content_hash(const std::filesystem::path& path);

// The runs of each imported content, which a run keeps as `content_hash` in its environment.
using ImportedContents = std::map<std::string, std::vector<RunId>>;
ImportedContents imported_contents(RunStore& store);  // without runs in the bin

}  // namespace stepladder
