// Reads SQLite's write-ahead log (FILE-wal, https://sqlite.org/fileformat2.html#walformat) without SQLite, which
// ignores everything behind the first damaged frame without a word. Inside storage/ only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

namespace stepladder {

struct WriteAheadLog {
  // The newest content of each page, of committed transactions: its offset in the log. With damaged frames in between,
  // of all the sound ones.
  std::unordered_map<std::uint32_t, std::int64_t> pages;
  std::int64_t page_size = 0;       // 0: there is no log
  std::int64_t database_pages = 0;  // the file's size after the last commit; 0: not known

  // Transactions that were on the disk and that SQLite would drop: a damaged frame is before them. A damaged frame in
  // the last transaction counts as an unfinished write, as a power failure leaves it.
  std::int64_t lost_transactions = 0;
  std::int64_t damaged_frames = 0;  // 0 if no transaction is lost

  // Pages whose newest content was in a damaged frame, so that an older one counts; 0 is a page of unknown number.
  std::vector<std::uint32_t> stale_pages;
};

// Reads the whole log of `database`, also while others write to it. Throws StorageError if it cannot be read.
WriteAheadLog read_write_ahead_log(const std::filesystem::path& database);

// "FILE-wal is damaged: ...", or empty.
std::string damage_of_write_ahead_log(const std::filesystem::path& database);

}  // namespace stepladder
