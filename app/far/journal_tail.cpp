#include "app/far/journal_tail.h"

#include <algorithm>
#include <string_view>

#include "app/far/files.h"
#include "storage/importers/journal/journal_line.h"

namespace stepladder::far {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 60s;
constexpr auto try_again = 1s;
constexpr std::size_t small_window = 64 << 10;
constexpr std::size_t large_window = 4 * longest_journal_line;  // in which a good line is looked for behind a bad one

bool is_good(std::string_view line) {
  return line.size() <= longest_journal_line && journal_checksum_holds(line);
}

// The end of the good lines from `begin` on.
std::size_t good_end(std::string_view window, std::size_t begin) {
  for (;;) {
    const std::size_t end = window.find('\n', begin);
    if (end == std::string_view::npos || !is_good(window.substr(begin, end - begin))) return begin;
    begin = end + 1;
  }
}

// The place where a good line begins behind the bad one at `begin`. Zeros that were never filled may be right before
// it.
std::size_t next_good(std::string_view window, std::size_t begin) {
  while (begin < window.size()) {
    const std::size_t end = window.find('\n', begin);
    if (end == std::string_view::npos) break;
    const std::string_view line = window.substr(begin, end - begin);
    if (is_good(line)) return begin;
    const std::size_t zero = line.rfind('\0');
    if (zero != std::string_view::npos && is_good(line.substr(zero + 1))) return begin + zero + 1;
    begin = end + 1;
  }
  return std::string_view::npos;
}

}  // namespace

std::string JournalTail::next(int file, bool writer_has_ended, Clock::time_point now) {
  if (verified_ <= offset_ && (!is_bad_ || now >= next_try_)) verify(file, writer_has_ended, now);
  if (verified_ <= offset_) return "";
  std::string bytes =
      read_at(file, offset_, static_cast<std::size_t>(std::min<std::uint64_t>(verified_ - offset_, most_at_once)));
  offset_ += bytes.size();
  return bytes;
}

void JournalTail::verify(int file, bool writer_has_ended, Clock::time_point now) {
  // The offset may be inside a line, whose checksum needs its beginning.
  std::uint64_t from = offset_;
  if (from > 0 && read_at(file, from - 1, 1) != "\n") {
    const std::uint64_t least = from > longest_journal_line ? from - longest_journal_line : 0;
    const std::string before = read_at(file, least, static_cast<std::size_t>(from - least));
    const std::size_t line_feed = before.rfind('\n');
    from = line_feed != std::string::npos ? least + line_feed + 1 : least;
  }
  std::string window = read_at(file, from, static_cast<std::size_t>(offset_ - from) + most_at_once);
  std::size_t good = good_end(window, 0);
  if (good == 0 && !window.empty() &&
      (window.size() >= most_at_once || writer_has_ended || window.find('\n') != std::string::npos)) {
    window = read_at(file, from, large_window);
    good = good_end(window, 0);
  }
  verified_ = std::max(offset_, from + good);
  is_bad_ = false;
  if (verified_ > offset_ || window.empty()) return;
  const bool is_whole = window.find('\n') != std::string::npos || window.size() > longest_journal_line;
  if (is_whole || writer_has_ended) {
    is_bad_ = true;
    next_try_ = now + try_again;
    if (bad_line_ != from) followed_since_ = {};
    bad_line_ = from;
    give_up(window, static_cast<std::size_t>(offset_ - from), writer_has_ended, now);
  }
}

void JournalTail::give_up(const std::string& window, std::size_t begin, bool writer_has_ended, Clock::time_point now) {
  const std::size_t good = next_good(window, 0);
  const bool is_followed = good != std::string::npos && good > begin;
  if (is_followed && followed_since_ == Clock::time_point()) followed_since_ = now;
  if (!writer_has_ended && !(is_followed && now - followed_since_ >= patience)) return;
  verified_ = bad_line_ + (is_followed ? good : window.size());
}

}  // namespace stepladder::far
