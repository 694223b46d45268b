// The pages of a project file that may be damaged, with those of its write-ahead log, read without SQLite. Inside
// storage/ only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "storage/database/rescue/byte_file.h"
#include "storage/database/rescue/write_ahead_log.h"

namespace stepladder {

class PageFile {
 public:
  // Throws StorageError if the file cannot be read, or is another program's.
  explicit PageFile(const std::filesystem::path& file);

  bool header_is_sound() const { return header_is_sound_; }
  std::int64_t user_version() const { return user_version_; }  // -1 without a sound header
  std::uint32_t pages() const { return pages_; }
  std::int64_t page_size() const { return page_size_; }
  const WriteAheadLog& log() const { return log_; }
  std::int64_t unreadable_bytes() const { return file_.unreadable_bytes(); }

  // The page without its reserved bytes; numbers count from 1, others give an empty text.
  std::string page(std::uint32_t number);

  // The rest of a payload.
  struct Overflow {
    std::string content;      // at most `bytes`, fewer if the chain of pages is damaged
    bool ends_there = false;  // the last page leads to no other
  };
  Overflow overflow(std::uint32_t first, std::int64_t bytes);

  // Pages that hold no table: the list of free pages, and those that record each page's parent. `whole`: the list could
  // be read to its end.
  std::vector<std::uint32_t> pages_without_rows(bool& whole);

 private:
  void read_header();
  std::int64_t guess_page_size();

  ByteFile file_;
  WriteAheadLog log_;
  std::unique_ptr<ByteFile> log_file_;
  std::int64_t page_size_ = 0;
  std::int64_t reserved_ = 0;  // bytes at each page's end
  std::uint32_t pages_ = 0;
  std::int64_t overflow_pages_left_ = 0;  // chains that lead into each other would be read for hours
  bool header_is_sound_ = false;
  bool records_parents_ = false;  // auto_vacuum
  std::int64_t user_version_ = -1;
  std::string header_;
};

}  // namespace stepladder
