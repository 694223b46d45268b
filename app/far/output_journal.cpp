// Turns a program's output into lines of a journal, and decides which output is kept when it is too much.
#include "app/far/output_journal.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "storage/importers/journal/journal_line.h"

namespace stepladder::far {
namespace {

constexpr std::size_t longest_rest = 4 << 10;  // of a line, beyond what a journal takes

// Appends each byte as one character, U+0000 to U+00FF, in ASCII.
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

std::string output_line(double time, std::string_view bytes) {
  char begin[64];
  std::snprintf(begin, sizeof begin, R"({"e":"out","t":%.6f,"b":")", time);
  std::string line = begin;
  append_escaped(line, bytes);
  return journal_line(std::move(line) + "\"}");
}

void OutputJournal::append(const Json& event) {
  add(journal_line(as_text(event)));
}

void OutputJournal::add(std::string_view line) {
  file_.add(line);
  last_line_ = std::chrono::steady_clock::now();
}

void OutputJournal::append_output(std::string_view bytes) {
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

bool OutputJournal::has_room(std::size_t bytes) {
  const auto now = std::chrono::steady_clock::now();
  allowed_ += output_per_second * std::chrono::duration<double>(now - std::exchange(allowed_at_, now)).count();
  allowed_ = std::min(allowed_, whole_output);
  const auto size = static_cast<double>(bytes);
  return file_.kept() <= most_in_memory && size <= allowed_ && appended_output_ + size <= most_output;
}

// Keeps the newest 64 KiB, cut at the end of a line if there is one.
void OutputJournal::hold_back(std::string_view piece) {
  held_back_ += piece;
  if (held_back_.size() <= longest_output) return;
  if (std::exchange(line_is_open_, false)) finish_line();
  if (held_back_.size() <= longest_output) return;
  const std::size_t line_end = held_back_.find('\n', held_back_.size() - longest_output - 1);
  const std::size_t lost = line_end == std::string::npos ? held_back_.size() - longest_output : line_end + 1;
  lost_lines_ += std::max<std::uint64_t>(1, std::count(held_back_.begin(), held_back_.begin() + lost, '\n'));
  lost_bytes_ += lost;
  lost_is_unreported_ = true;
  held_back_.erase(0, lost);
}

// Completes a line whose beginning was appended, if its rest isn't long: the next line kept would continue it.
void OutputJournal::finish_line() {
  const std::size_t line_end = held_back_.find('\n');
  if (line_end >= longest_rest) return;
  append_piece(std::string_view(held_back_).substr(0, line_end + 1));
  held_back_.erase(0, line_end + 1);
}

void OutputJournal::append_held_back() {
  if (held_back_.empty()) return;
  report_lost();
  append_piece(std::exchange(held_back_, {}));
}

void OutputJournal::append_piece(std::string_view piece) {
  const std::string line = output_line(now(), piece);
  allowed_ -= static_cast<double>(line.size());
  appended_output_ += static_cast<double>(line.size());
  add(line);
  line_is_open_ = !piece.ends_with('\n');
}

void OutputJournal::report_lost() {
  if (!lost_is_unreported_) return;
  lost_is_unreported_ = false;
  append({{"e", "lost"}, {"t", now()}, {"n", lost_lines_}, {"bytes", lost_bytes_}});
}

void OutputJournal::write() {
  if (has_room(held_back_.size())) append_held_back();
  if (lost_is_unreported_ && file_.kept() <= most_in_memory) report_lost();
  file_.write();  // a full disk: tried again later
}

}  // namespace stepladder::far
