#include "storage/importers/source_code.h"

#include <cstdio>

namespace stepladder {
namespace {

constexpr std::size_t most_bytes = 4 << 20;
constexpr std::size_t most_of_line = 80;
constexpr std::size_t shortest_rule = 40;

}  // namespace

void SourceCodeHash::take(std::string_view piece) {
  for (const char c : piece) {
    if (ended_ || failed_) return;
    if (c == '\n') {
      end_line();
      if (ended_) return;
    } else if (c != '\r' && line_.size() < most_of_line) {
      line_ += c;
    }
    hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    failed_ = ++bytes_ > most_bytes;
  }
}

void SourceCodeHash::end_line() {
  if (line_.starts_with("import ") || line_.starts_with("from ")) imports_ = true;
  const bool rule = line_.size() >= shortest_rule && line_.find_first_not_of('=') == std::string::npos;
  ended_ = rule;
  line_.clear();
}

std::string SourceCodeHash::text() const {
  if (!ended_ || !imports_) return {};
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash_));
  return text;
}

}  // namespace stepladder
