// Reads FILE-wal frame by frame and decides whether damage in it loses committed transactions. One damaged transaction
// at the end is an ordinary power failure; commits behind a damaged frame are a loss. Two equal readings are needed,
// since another process may be writing.
#include "storage/database/rescue/write_ahead_log.h"

#include <algorithm>
#include <optional>
#include <set>

#include "storage/database/rescue/byte_file.h"
#include "storage/errors.h"
#include "storage/regular_file.h"
#include "storage/wording.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t log_header_size = 32;
constexpr std::int64_t frame_header_size = 24;
constexpr std::uint32_t log_magic = 0x377f'0682;  // the last bit: the checksums' byte order is big-endian

struct LogChecksum {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  bool operator==(const LogChecksum&) const = default;

  // As in walChecksumBytes of SQLite's wal.c.
  void add(std::string_view bytes, bool big_endian) {
    for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      const auto word = [&](std::size_t offset) {
        return big_endian ? big_endian_u32(bytes, offset) : __builtin_bswap32(big_endian_u32(bytes, offset));
      };
      first += word(at) + second;
      second += word(at + 4) + first;
    }
  }
};

struct Frame {
  std::uint32_t page = 0;
  std::uint32_t pages_after_commit = 0;  // 0: not the last frame of its transaction
  LogChecksum checksum;
  std::int64_t content = 0;  // offset
  enum class State { sound, damaged, damaged_header } state = State::sound;
};

// Needed only if the log's own header is damaged: closing the database's file would end the locks of other connections
// of this process.
std::int64_t page_size_of(const fs::path& database) {
  ByteFile file(database);
  if (file.size() < 100) return 4096;
  const std::string head = file.read(16, 2);
  const std::int64_t size = big_endian_u32(std::string(2, '\0') + head, 0);
  return size == 1 ? 65536 : size >= 512 && (size & (size - 1)) == 0 ? size : 4096;
}

class LogReader {
 public:
  LogReader(const fs::path& database, const fs::path& log) : database_(database), file_(log) {}

  bool is_empty() const { return file_.size() <= log_header_size; }
  std::int64_t page_size() const { return page_size_; }
  bool header_is_sound() const { return header_is_sound_; }

  std::string header() { return file_.read(0, log_header_size); }

  // Reads up to the last frame of this log; later ones are left from an earlier log.
  std::vector<Frame> frames() {
    read_header();
    std::vector<Frame> frames;
    if (page_size_ == 0) return frames;
    std::size_t used = 0;
    std::optional<LogChecksum> before;
    if (header_is_sound_) before = checksum_;
    for (std::int64_t at = log_header_size; at + frame_header_size + page_size_ <= file_.size();
         at += frame_header_size + page_size_) {
      frames.push_back(read_frame(at, before));
      const bool has_salt = frames.back().state != Frame::State::damaged_header;
      before = has_salt ? std::optional(frames.back().checksum) : std::nullopt;
      if (has_salt) used = frames.size();
    }
    frames.resize(used);
    return frames;
  }

 private:
  void read_header() {
    const std::string head = header();
    checksum_ = {};
    big_endian_ = (big_endian_u32(head, 0) & 1) != 0;
    checksum_.add(std::string_view(head).substr(0, 24), big_endian_);
    header_is_sound_ = (big_endian_u32(head, 0) & ~1u) == log_magic &&
                       checksum_ == LogChecksum{big_endian_u32(head, 24), big_endian_u32(head, 28)};
    page_size_ = header_is_sound_ ? big_endian_u32(head, 8) : page_size_of(database_);
    if (page_size_ < 512 || page_size_ > 65536 || file_.size() < log_header_size + frame_header_size + page_size_)
      page_size_ = 0;
    if (page_size_ == 0) return;
    // Without a sound header, the salt of the first frame is used. Its checksum cannot be verified then.
    salt_ = header_is_sound_ ? head.substr(16, 8) : file_.read(log_header_size + 8, 8);
    if (!header_is_sound_) big_endian_ = false;
  }

  Frame read_frame(std::int64_t at, const std::optional<LogChecksum>& before) {
    const std::string bytes = file_.read(at, frame_header_size + page_size_);
    const std::string_view view = bytes;
    Frame frame{.page = big_endian_u32(view, 0),
                .pages_after_commit = big_endian_u32(view, 4),
                .checksum = {big_endian_u32(view, 16), big_endian_u32(view, 20)},
                .content = at + frame_header_size};
    if (view.substr(8, 8) != salt_ || frame.page == 0) {
      frame.state = Frame::State::damaged_header;
      return frame;
    }
    if (!before) return frame;  // behind a damaged header: its content can't be verified, but its salt fits
    LogChecksum sum = *before;
    sum.add(view.substr(0, 8), big_endian_);
    sum.add(view.substr(frame_header_size), big_endian_);
    if (sum != frame.checksum) frame.state = Frame::State::damaged;
    return frame;
  }

  fs::path database_;
  ByteFile file_;
  std::int64_t page_size_ = 0;
  bool header_is_sound_ = false;
  bool big_endian_ = false;
  LogChecksum checksum_;
  std::string salt_;
};

// Offsets of the newest content of each page in frames[first, end), and what damaged frames in between left stale.
void apply_frames(const std::vector<Frame>& frames, std::size_t end, WriteAheadLog& log) {
  std::set<std::uint32_t> stale;
  for (std::size_t i = 0; i < end; ++i) {
    const Frame& frame = frames[i];
    if (frame.state == Frame::State::sound) {
      log.pages[frame.page] = frame.content;
      stale.erase(frame.page);
      if (frame.pages_after_commit != 0) log.database_pages = frame.pages_after_commit;
    } else {
      stale.insert(frame.state == Frame::State::damaged ? frame.page : 0);
      ++log.damaged_frames;
    }
  }
  log.stale_pages.assign(stale.begin(), stale.end());
}

// Whether the log's pages differ from the file's. If not, they have been moved there, and the log is only left over.
bool differs_from(const fs::path& database, const fs::path& log_file, const WriteAheadLog& log) {
  ByteFile file(database), log_bytes(log_file);
  return std::ranges::any_of(log.pages, [&](const auto& entry) {
    const std::int64_t at = (static_cast<std::int64_t>(entry.first) - 1) * log.page_size;
    return at + log.page_size > file.size() ||
           file.read(at, log.page_size) != log_bytes.read(entry.second, log.page_size);
  });
}

WriteAheadLog read_once(const fs::path& database, const fs::path& log_file) {
  WriteAheadLog log;
  LogReader reader(database, log_file);
  if (reader.is_empty()) return log;
  const std::vector<Frame> frames = reader.frames();
  log.page_size = reader.page_size();

  const auto is_damaged = [](const Frame& frame) { return frame.state != Frame::State::sound; };
  const auto is_commit = [](const Frame& frame) {
    return frame.state == Frame::State::sound && frame.pages_after_commit != 0;
  };
  const auto bad = reader.header_is_sound() ? std::ranges::find_if(frames, is_damaged) : frames.begin();
  const auto after_last_commit = [&](auto end) {
    const auto last = std::find_if(std::make_reverse_iterator(end), frames.rend(), is_commit);
    return static_cast<std::size_t>(frames.rend() - last);
  };
  // The first commit behind the damaged frame may be of the transaction that was being written when the power failed.
  // Each later one was begun only once that one was on the disk.
  const std::int64_t commits_behind = std::count_if(bad, frames.end(), is_commit);
  if (commits_behind < 2) {
    apply_frames(frames, after_last_commit(bad), log);
    return log;
  }
  apply_frames(frames, after_last_commit(frames.end()), log);
  if (!reader.header_is_sound()) ++log.damaged_frames;
  log.lost_transactions = commits_behind;
  if (reader.header_is_sound() || differs_from(database, log_file, log)) return log;
  return {};
}

}  // namespace

WriteAheadLog read_write_ahead_log(const fs::path& database) {
  const fs::path log_file = database.string() + "-wal";
  if (is_hollow(log_file))
    throw StorageError(log_file.string() +
                       " is nearly all holes, as SQLite never writes it; it isn't Stepladder's: "
                       "move it away, and open " +
                       database.string() + " again");
  // While another process writes, a log may look damaged once, but not twice in the same way.
  std::int64_t lost_before = 0;
  std::string header_before;
  for (int attempt = 0;; ++attempt) {
    std::error_code error;
    const auto bytes = fs::file_size(log_file, error);
    if (error || bytes <= static_cast<std::uintmax_t>(log_header_size)) return {};
    std::string header = ByteFile(log_file).read(0, log_header_size);
    WriteAheadLog log = read_once(database, log_file);
    if (log.lost_transactions == 0 || attempt == 20) return log;
    if (log.lost_transactions == lost_before && header == header_before) return log;
    lost_before = log.lost_transactions;
    header_before = std::move(header);
  }
}

std::string damage_of_write_ahead_log(const fs::path& database) {
  const WriteAheadLog log = read_write_ahead_log(database);
  if (log.lost_transactions == 0) return {};
  return fmt::format("{}-wal is damaged: opening the file would drop the last {}, which follow {} of it",
                     database.string(), plural(log.lost_transactions, "transaction"),
                     log.damaged_frames == 1 ? "a damaged page" : "damaged pages");
}

}  // namespace stepladder
