#include "storage/importers/logs/lines/line_reader.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace stepladder {
namespace {

// Where a line ends: LF, CR, or the backspaces of an old progress bar.
constexpr std::array<bool, 256> line_ends = [] {
  std::array<bool, 256> ends{};
  ends['\n'] = ends['\r'] = ends['\b'] = true;
  return ends;
}();

const char* find_end(const char* begin, const char* end) {
  constexpr std::uint64_t ones = 0x0101010101010101, highs = 0x8080808080808080;
  // Eight bytes at a time: only a byte below 14 can end a line.
  while (end - begin >= 8) {
    std::uint64_t word;
    std::memcpy(&word, begin, 8);
    if ((word - ones * 14) & ~word & highs) {
      for (int i = 0; i < 8; ++i)
        if (line_ends[static_cast<unsigned char>(begin[i])]) return begin + i;
    }
    begin += 8;
  }
  while (begin < end && !line_ends[static_cast<unsigned char>(*begin)]) ++begin;
  return begin;
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

LineReader::LineReader(ImportInput& input, ImportSink& sink)
    : input_(input), decoder_(input.head()), skipped_(sink, "lines were skipped, too long or with NUL bytes") {
  const std::string_view head = input.head();
  if (head.empty()) throw ImportError("is empty");
  if (!looks_like_text(head)) throw ImportError("is binary, not the text of a log");
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
  skipped_.finish();
  return false;
}

// The next line as it is in the input, perhaps an empty one.
bool LineReader::cut(std::string_view& line) {
  carried_.clear();
  while (true) {
    if (rest_.empty()) {
      if (!finished_ && refill()) continue;
      finished_ = true;
      number_ = ended_ + 1;
      if (skipping_) skipped("the line is longer than a MiB");
      skipping_ = false;
      if (carried_.empty()) return false;
      given_.swap(carried_);
      line = given_;
      return true;
    }
    const char* const begin = rest_.data();
    const char* const end = begin + rest_.size();
    const char* const stop = find_end(begin, end);
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
      line = given_;
    }
    return true;
  }
}

bool LineReader::refill() {
  const std::string_view bytes = input_.next();
  if (bytes.empty()) return false;
  rest_ = decoder_.decode(bytes);
  return true;
}

}  // namespace stepladder
