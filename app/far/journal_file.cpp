#include "app/far/journal_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "storage/importers/journal/journal_line.h"

namespace stepladder::far {
namespace {

constexpr std::size_t longest_rest = 4 << 10;  // of a line, beyond what a journal takes

// Each byte is one character, U+0000 to U+00FF, in ASCII.
void append_escaped(std::string& text, std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (c == '\n') {
      text += "\\n";
    } else if (byte < 0x20 || byte >= 0x7f) {
      text += "\\u00";
      text += digits[byte >> 4];
      text += digits[byte & 15];
    } else {
      text += c;
    }
  }
}

}  // namespace

void JournalFile::append(const Json& event) {
  bytes_ += journal_line(as_text(event));
  last_line_ = std::chrono::steady_clock::now();
}

void JournalFile::append_output(std::string_view bytes) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), longest_output))) {
    const std::string_view piece = bytes.substr(0, longest_output);
    if (!has_room(held_back_.size() + piece.size())) {
      hold_back(piece);
    } else {
      append_held_back();
      append_piece(piece);
    }
  }
}

bool JournalFile::has_room(std::size_t bytes) {
  const auto now = std::chrono::steady_clock::now();
  allowed_ += output_per_second * std::chrono::duration<double>(now - std::exchange(allowed_at_, now)).count();
  allowed_ = std::min(allowed_, whole_output);
  const auto size = static_cast<double>(bytes);
  return bytes_.size() <= most_in_memory && size <= allowed_ && appended_output_ + size <= most_output;
}

// Whole lines of it, as far as it has any.
void JournalFile::hold_back(std::string_view piece) {
  held_back_ += piece;
  if (held_back_.size() <= longest_output) return;
  if (std::exchange(line_is_open_, false)) finish_line();
  if (held_back_.size() <= longest_output) return;
  const std::size_t line_end = held_back_.find('\n', held_back_.size() - longest_output - 1);
  const std::size_t lost = line_end == std::string::npos ? held_back_.size() - longest_output : line_end + 1;
  lost_lines_ += std::max<std::uint64_t>(1, std::count(held_back_.begin(), held_back_.begin() + lost, '\n'));
  lost_bytes_ += lost;
  lost_unsaid_ = true;
  held_back_.erase(0, lost);
}

// What was appended ends within a line: its rest too, if it isn't long, since the next line kept would continue it.
void JournalFile::finish_line() {
  const std::size_t line_end = held_back_.find('\n');
  if (line_end >= longest_rest) return;
  append_piece(std::string_view(held_back_).substr(0, line_end + 1));
  held_back_.erase(0, line_end + 1);
}

void JournalFile::append_held_back() {
  if (held_back_.empty()) return;
  say_lost();
  append_piece(std::exchange(held_back_, {}));
}

void JournalFile::append_piece(std::string_view piece) {
  char begin[64];
  std::snprintf(begin, sizeof begin, R"({"e":"out","t":%.6f,"b":")", now());
  std::string line = begin;
  append_escaped(line, piece);
  line = journal_line(std::move(line) + "\"}");
  allowed_ -= static_cast<double>(line.size());
  appended_output_ += static_cast<double>(line.size());
  bytes_ += line;
  line_is_open_ = !piece.ends_with('\n');
  last_line_ = std::chrono::steady_clock::now();
}

void JournalFile::say_lost() {
  if (!lost_unsaid_) return;
  lost_unsaid_ = false;
  append({{"e", "lost"}, {"t", now()}, {"n", lost_lines_}, {"bytes", lost_bytes_}});
}

void JournalFile::write() {
  if (has_room(held_back_.size())) append_held_back();
  if (lost_unsaid_ && bytes_.size() <= most_in_memory) say_lost();
  while (written_ < bytes_.size()) {
    const ssize_t count = ::pwrite(file_.get(), bytes_.data() + written_, bytes_.size() - written_,
                                   static_cast<off_t>(synced_ + written_));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // a full disk: tried again later
    written_ += static_cast<std::size_t>(count);
  }
}

void JournalFile::sync() {
  if (written_ == 0) return;
  if (::fsync(file_.get()) != 0 && errno != EINVAL && errno != EROFS && errno != ENOSYS) {
    written_ = 0;  // the same bytes again, at the same place
    return;
  }
  bytes_.erase(0, written_);
  synced_ += written_;
  written_ = 0;
}

}  // namespace stepladder::far
