// Cuts decoded pieces into lines without copying, except for lines that span two pieces or have colour codes.
#include "storage/importers/logs/lines/line_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace stepladder {
namespace {

constexpr std::size_t looked_at = 65536;  // bytes, to tell text from binary

// LF, CR, and the backspace of an old progress bar.
bool ends_line(char c) {
  return c == '\n' || c == '\r' || c == '\b';
}

// ESC [ ... letter, ESC ] ... BEL, and ESC with one character.
void without_colours(std::string_view line, std::string& plain) {
  plain.clear();
  std::size_t at = 0;
  while (at < line.size()) {
    if (line[at] != '\x1b') {
      plain += line[at++];
      continue;
    }
    ++at;
    if (at < line.size() && line[at] == '[') {
      ++at;
      while (at < line.size() && !(line[at] >= '@' && line[at] <= '~')) ++at;
      ++at;
    } else if (at < line.size() && line[at] == ']') {
      while (at < line.size() && line[at] != '\a') ++at;
      ++at;
    } else {
      ++at;
    }
  }
}

}  // namespace

void LineReader::give(std::string_view bytes) {
  if (!decoder_) {
    if (!looks_like_text(bytes.substr(0, looked_at))) throw ImportError("is binary, not the text of a log");
    decoder_.emplace(bytes);
  }
  rest_ = decoder_->decode(bytes);
}

void LineReader::finish() {
  if (!decoder_) throw ImportError("is empty");
  finished_ = true;
}

void LineReader::skipped(const char* why) {
  skipped_.note(number_, std::string("skipped: ") + why);
}

bool LineReader::next(std::string_view& line) {
  while (cut(line)) {
    if (line.empty()) continue;
    if (std::memchr(line.data(), '\0', line.size())) {
      skipped("the line contains NUL bytes");
      continue;
    }
    if (std::memchr(line.data(), '\x1b', line.size())) {
      without_colours(line, plain_);
      line = plain_;
    }
    return true;
  }
  if (finished_ && !std::exchange(ends_noted_, true)) skipped_.finish();
  return false;
}

// The next line as it is in the input, perhaps an empty one. The start of a line whose end isn't there yet is carried
// over to the next bytes.
bool LineReader::cut(std::string_view& line) {
  while (!rest_.empty()) {
    // A log that was cut to nothing while its writer went on has NUL bytes up to where that had got.
    if (carried_.empty() && !skipping_ && rest_.front() == '\0') {
      rest_.remove_prefix(std::min(rest_.find_first_not_of('\0'), rest_.size()));
      number_ = ended_ + 1;
      if (!std::exchange(in_hole_, true)) skipped("NUL bytes in front of the line");
      continue;
    }
    in_hole_ = false;
    const char* const begin = rest_.data();
    const char* const end = begin + rest_.size();
    const char* const stop = std::find_if(begin, end, ends_line);
    const std::string_view part(begin, static_cast<std::size_t>(stop - begin));
    const bool ends = stop != end;
    rest_.remove_prefix(part.size() + (ends ? 1 : 0));
    if (!ends) {
      if (skipping_ || carried_.size() + part.size() > longest) {
        skipping_ = true;
        carried_.clear();
      } else {
        carried_.append(part);
      }
      continue;
    }
    number_ = ended_ + 1;
    if (*stop == '\n') ++ended_;
    if (skipping_ || part.size() > longest) {
      skipping_ = false;
      carried_.clear();
      skipped("the line is longer than a MiB");
      continue;
    }
    if (carried_.empty()) {
      line = part;
    } else {
      carried_.append(part);
      given_.swap(carried_);
      carried_.clear();
      line = given_;
    }
    return true;
  }
  return finished_ && cut_last(line);
}

// The rest behind the last end of a line.
bool LineReader::cut_last(std::string_view& line) {
  number_ = ended_ + 1;
  if (std::exchange(skipping_, false)) skipped("the line is longer than a MiB");
  if (carried_.empty()) return false;
  given_.swap(carried_);
  carried_.clear();
  line = given_;
  return rest_given_ = true;
}

namespace {

constexpr std::string_view utf8_mark = "\xEF\xBB\xBF";
constexpr std::string_view utf16_le_mark = "\xFF\xFE";
constexpr std::string_view utf16_be_mark = "\xFE\xFF";

enum class Encoding { utf8, utf16_le, utf16_be };

// By its mark; or without one, as every other byte of most languages' programs is NUL.
Encoding encoding_of(std::string_view head) {
  if (head.starts_with(utf16_le_mark)) return Encoding::utf16_le;
  if (head.starts_with(utf16_be_mark)) return Encoding::utf16_be;
  std::size_t nuls[2] = {0, 0};
  for (std::size_t i = 0; i < head.size(); ++i) nuls[i % 2] += head[i] == '\0';
  const auto most = [&](int odd) { return nuls[odd] * 5 > head.size() * 2 && nuls[1 - odd] == 0; };
  return most(1) ? Encoding::utf16_le : most(0) ? Encoding::utf16_be : Encoding::utf8;
}

void append_utf8(std::string& text, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  }
}

}  // namespace

bool looks_like_text(std::string_view head) {
  if (encoding_of(head) != Encoding::utf8) return true;
  if (const std::size_t hole = head.find_first_not_of('\0'); hole != head.npos) head.remove_prefix(hole);
  std::size_t odd = 0;
  for (const char c : head) {
    const auto byte = static_cast<unsigned char>(c);
    odd += byte < 7 || (byte > 13 && byte < 27) || (byte > 27 && byte < 32) || byte == 127;
  }
  return odd * 100 <= head.size();
}

TextDecoder::TextDecoder(std::string_view head)
    : is_utf16_(encoding_of(head) != Encoding::utf8), is_big_endian_(encoding_of(head) == Encoding::utf16_be) {}

std::string_view TextDecoder::decode(std::string_view bytes) {
  if (!started_ && bytes.starts_with(utf8_mark)) bytes.remove_prefix(utf8_mark.size());
  started_ = true;
  if (!is_utf16_) return bytes;
  convert_utf16(bytes);
  return converted_;
}

void TextDecoder::convert_utf16(std::string_view bytes) {
  converted_.clear();
  odd_.append(bytes);
  for (std::size_t i = 0; i + 1 < odd_.size(); i += 2) {
    const auto a = static_cast<unsigned char>(odd_[i]), b = static_cast<unsigned char>(odd_[i + 1]);
    const std::uint32_t code = is_big_endian_ ? b | a << 8 : a | b << 8;
    if (code == 0xFEFF) continue;
    if (code >= 0xD800 && code < 0xDC00) {
      high_ = code;
    } else if (code >= 0xDC00 && code < 0xE000) {
      if (high_) append_utf8(converted_, 0x10000 + ((high_ - 0xD800) << 10) + (code - 0xDC00));
      high_ = 0;
    } else {
      append_utf8(converted_, code);
    }
  }
  odd_.erase(0, odd_.size() / 2 * 2);
}

}  // namespace stepladder
