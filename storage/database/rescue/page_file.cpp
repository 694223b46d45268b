// Gives tree_reader.h the newest content of each page: from the write-ahead log, else from the file. A damaged header
// is survivable: the page size is then guessed from the pages themselves. Overflow chains have a budget, since damaged
// ones may be circular.
#include "storage/database/rescue/page_file.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "storage/database/rescue/btree_page.h"
#include "storage/database/schema.h"
#include "storage/errors.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t header_bytes = 100;

// https://sqlite.org/fileformat2.html#the_database_header
std::int64_t page_size_in(std::string_view header) {
  const std::uint32_t size = big_endian_u16(header, 16);
  return size == 1 ? 65536 : size;
}

bool is_sound_header(std::string_view header) {
  const std::int64_t size = page_size_in(header);
  return header.starts_with(std::string_view("SQLite format 3\0", 16)) && size >= 512 && (size & (size - 1)) == 0 &&
         header[18] <= 2 && header[19] <= 2 && header[21] == 64 && header[22] == 32 && header[23] == 32;
}

}  // namespace

PageFile::PageFile(const fs::path& file) : file_(file), log_(read_write_ahead_log(file)) {
  if (log_.page_size > 0) log_file_ = std::make_unique<ByteFile>(file.string() + "-wal");
  page_size_ = log_.page_size;
  read_header();
  if (!header_is_sound_) return;
  if (big_endian_u32(header_, 68) != static_cast<std::uint32_t>(application_id))
    throw StorageError(file.string() + " is a SQLite database of another program");
}

void PageFile::read_header() {
  const auto in_log = log_.pages.find(1);
  header_ = in_log != log_.pages.end() ? log_file_->read(in_log->second, header_bytes) : file_.read(0, header_bytes);
  header_is_sound_ = is_sound_header(header_);
  if (page_size_ == 0) page_size_ = header_is_sound_ ? page_size_in(header_) : guess_page_size();
  const std::int64_t most = std::numeric_limits<std::uint32_t>::max() - 1;
  std::int64_t pages = std::max(file_.size() / page_size_, log_.database_pages);
  if (header_is_sound_) {
    reserved_ = static_cast<unsigned char>(header_[20]);
    if (page_size_ - reserved_ < 480) reserved_ = 0;
    records_parents_ = big_endian_u32(header_, 52) != 0;
    user_version_ = static_cast<std::int32_t>(big_endian_u32(header_, 60));
    // Pages behind the database's end are left over. The size in the header counts if the same writer wrote both.
    const bool is_valid = big_endian_u32(header_, 24) == big_endian_u32(header_, 92);
    const std::int64_t said = log_.database_pages > 0 ? log_.database_pages
                              : is_valid              ? big_endian_u32(header_, 28)
                                                      : 0;
    if (said > 0) pages = std::min(pages, said);
  }
  pages_ = static_cast<std::uint32_t>(std::min(pages, most));
  overflow_pages_left_ = 100 * (std::int64_t{pages_} + 1);
}

// The size of which most bytes are pages of b-trees.
std::int64_t PageFile::guess_page_size() {
  std::int64_t best = 4096, most = 0;
  for (std::int64_t size = 512; size <= 65536; size *= 2) {
    std::int64_t covered = 0;
    const std::int64_t count = std::min<std::int64_t>(file_.size() / size, 1000);
    for (std::int64_t page = 1; page < count; ++page) {
      const std::string bytes = file_.read(page * size, size);
      const auto parsed = parse_btree_page(bytes, false);
      // Cells are stored from the page's end on: if none is in its second half, the pages are smaller.
      bool is_whole = true, is_long_enough = false;
      for (const auto& cell : parsed ? parsed->cells : std::vector<std::optional<Cell>>()) {
        is_whole = is_whole && cell;
        is_long_enough = is_long_enough || (cell && cell->local.end() > bytes.data() + size / 2);
      }
      if (is_whole && is_long_enough) covered += size;
    }
    if (covered > most) best = size, most = covered;
  }
  return best;
}

std::string PageFile::page(std::uint32_t number) {
  if (number == 0 || number > pages_) return {};
  const auto in_log = log_.pages.find(number);
  std::string bytes = in_log != log_.pages.end() ? log_file_->read(in_log->second, page_size_)
                                                 : file_.read((number - std::int64_t{1}) * page_size_, page_size_);
  bytes.resize(static_cast<std::size_t>(page_size_ - reserved_));
  return bytes;
}

PageFile::Overflow PageFile::overflow(std::uint32_t first, std::int64_t bytes) {
  std::string content;
  std::uint32_t next = first;
  while (next != 0 && std::ssize(content) < bytes) {
    const std::string page = this->page(next);
    if (page.empty() || --overflow_pages_left_ < 0) break;
    next = big_endian_u32(page, 0);
    content.append(page, 4);
  }
  if (std::ssize(content) > bytes) content.resize(static_cast<std::size_t>(bytes));
  return {.content = std::move(content), .ends_there = next == 0};
}

std::vector<std::uint32_t> PageFile::pages_without_rows(bool& whole) {
  std::vector<std::uint32_t> found;
  whole = header_is_sound_;
  if (!header_is_sound_) return found;
  const std::int64_t usable = page_size_ - reserved_;
  if (records_parents_)
    for (std::int64_t page = 2; page <= pages_; page += usable / 5 + 1)
      found.push_back(static_cast<std::uint32_t>(page));
  const std::int64_t lock_page = 0x4000'0000 / page_size_ + 1;
  if (lock_page <= pages_) found.push_back(static_cast<std::uint32_t>(lock_page));
  const std::size_t free_pages = big_endian_u32(header_, 36);
  std::size_t seen = 0;
  for (std::uint32_t trunk = big_endian_u32(header_, 32); trunk != 0;) {
    const std::string bytes = page(trunk);
    const std::uint32_t leaves = bytes.empty() ? 0 : big_endian_u32(bytes, 4);
    seen += leaves + std::size_t{1};
    if (bytes.empty() || leaves > static_cast<std::size_t>(usable) / 4 - 2 || seen > free_pages) {
      whole = false;
      return found;
    }
    found.push_back(trunk);
    for (std::uint32_t i = 0; i < leaves; ++i) found.push_back(big_endian_u32(bytes, 8 + 4 * std::size_t{i}));
    trunk = big_endian_u32(bytes, 0);
  }
  whole = seen == free_pages;
  return found;
}

}  // namespace stepladder
