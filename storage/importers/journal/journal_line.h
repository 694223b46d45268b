// A line of a journal (docs/journal.md): JSON, a tab, the JSON's CRC-32 as eight hexadecimal digits. Pure and without
// other parts of storage, since the far program uses it too.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "storage/checksum.h"

namespace stepladder {

constexpr std::size_t longest_journal_line = 1 << 20;  // with its checksum
constexpr std::size_t journal_checksum_size = 9;       // a tab and eight digits
constexpr int deepest_journal_json = 20;

// `line` without its line feed.
inline bool journal_checksum_holds(std::string_view line) {
  if (line.size() < journal_checksum_size || line[line.size() - journal_checksum_size] != '\t') return false;
  std::uint32_t stored = 0;
  const char* const end = line.data() + line.size();
  const auto [last, error] = std::from_chars(end - journal_checksum_size + 1, end, stored, 16);
  return error == std::errc() && last == end && stored == crc32(line.substr(0, line.size() - journal_checksum_size));
}

// The line with its checksum and line feed.
inline std::string journal_line(std::string json) {
  char checksum[journal_checksum_size + 2];
  std::snprintf(checksum, sizeof checksum, "\t%08x\n", static_cast<unsigned>(crc32(json)));
  return std::move(json) + checksum;
}

}  // namespace stepladder
