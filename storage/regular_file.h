// Opens files from outside for reading: regular ones alone, so that neither a named pipe without a writer nor a device
// without an end keeps the program waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <istream>
#include <memory>
#include <string>

#include "storage/own_folder.h"

namespace stepladder {

// Whether a link may lead to the file: yes for one that the user named, no for one that was found in a folder.
enum class Links { followed, refused };

// Empty if it can't be opened; then `why` is "cannot be opened: Permission denied", "is not a regular file" or the
// like.
Descriptor open_regular(const std::filesystem::path& path, std::string& why, Links links = Links::followed);

// Such a file as a stream, which has failed if it can't be opened. Stays the same file when another one gets its name.
class RegularFile : public std::istream {
 public:
  explicit RegularFile(const std::filesystem::path& path, Links links = Links::followed);
  ~RegularFile() override;

  const std::string& why() const { return why_; }                    // it can't be opened; else empty
  std::int64_t size() const;                                         // in bytes, now
  bool is_at(const std::filesystem::path& path) const;               // whether that is a name of it
  std::string read_at(std::int64_t offset, std::size_t most) const;  // leaves the stream's position alone

 private:
  class Buffer;
  std::string why_;
  const Descriptor descriptor_;
  const std::unique_ptr<Buffer> buffer_;
};

// The reason, as a sentence, why SQLite must not open a database: a file beside it that SQLite would follow, write
// through, or remove another file for. Empty if there is none.
std::string strange_neighbour_of(const std::filesystem::path& database);

// Whether a file has more than 1 GiB by its size but is nearly all holes: no log and no database is, and reading or
// copying it would take for ever.
bool is_hollow(const std::filesystem::path& path);

}  // namespace stepladder
