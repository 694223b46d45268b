// Line difference of two scripts by Myers' algorithm, for the flag `several-scripts` and `record diff`. Memory grows
// with the square of the changes, so beyond most_changes it gives one block.
#include "storage/speedrun/script_diff.h"

#include <algorithm>
#include <cstdint>

#include "storage/importers/text.h"

namespace stepladder {
namespace {

constexpr std::int64_t most_changes = 4'000;
constexpr std::size_t longest_shown = 80;

using Lines = std::vector<std::string_view>;

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
  }
  return lines;
}

// The furthest row that each diagonal reached after d changes, for all d until the end is reached; empty beyond
// most_changes. A diagonal is row - column; trace[d][k + d] belongs to diagonal k.
std::vector<std::vector<std::int32_t>> trace_of(const Lines& a, const Lines& b) {
  const auto rows = static_cast<std::int64_t>(a.size()), columns = static_cast<std::int64_t>(b.size());
  std::vector<std::vector<std::int32_t>> trace;
  for (std::int64_t d = 0; d <= std::min(rows + columns, most_changes); ++d) {
    std::vector<std::int32_t> reached(static_cast<std::size_t>(2 * d + 1), -1);
    for (std::int64_t k = -d; k <= d; k += 2) {
      std::int64_t row = 0;
      if (d > 0) {
        const auto& before = trace.back();  // diagonals 1 - d to d - 1
        const auto at = [&](std::int64_t diagonal) -> std::int64_t {
          return diagonal < 1 - d || diagonal > d - 1 ? -1 : before[static_cast<std::size_t>(diagonal + d - 1)];
        };
        row = std::max(at(k - 1) + 1, at(k + 1));
      }
      std::int64_t column = row - k;
      while (row < rows && column >= 0 && column < columns &&
             a[static_cast<std::size_t>(row)] == b[static_cast<std::size_t>(column)])
        ++row, ++column;
      reached[static_cast<std::size_t>(k + d)] = static_cast<std::int32_t>(std::min(row, rows + 1));
      if (row >= rows && column >= columns) {
        trace.push_back(std::move(reached));
        return trace;
      }
    }
    trace.push_back(std::move(reached));
  }
  return {};
}

}  // namespace

std::string without_comments(std::string_view script) {
  std::string result;
  char quote = 0;
  bool tripled = false;
  for (const std::string_view line : lines_of(script)) {
    std::string kept;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      const bool three = i + 2 < line.size() && line[i + 1] == c && line[i + 2] == c;
      if (quote == 0 && c == '#') break;
      if (quote != 0 && c == '\\') {
        kept += c;
        if (i + 1 < line.size()) kept += line[++i];
        continue;
      }
      if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
        tripled = three;
        kept.append(tripled ? 3 : 1, c);
        i += tripled ? 2 : 0;
        continue;
      }
      if (quote == c && (!tripled || three)) {
        kept.append(tripled ? 3 : 1, c);
        i += tripled ? 2 : 0;
        quote = 0;
        continue;
      }
      kept += c;
    }
    if (!tripled) quote = 0;  // a text of one line ends with it
    kept.resize(kept.find_last_not_of(" \t") + 1);
    if (!kept.empty()) result += kept + "\n";
  }
  return result;
}

std::vector<DiffLine> script_diff(std::string_view before, std::string_view after) {
  Lines a = lines_of(before), b = lines_of(after);
  std::size_t begin = 0;
  while (begin < a.size() && begin < b.size() && a[begin] == b[begin]) ++begin;
  while (a.size() > begin && b.size() > begin && a.back() == b.back()) a.pop_back(), b.pop_back();
  a.erase(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(begin));
  b.erase(b.begin(), b.begin() + static_cast<std::ptrdiff_t>(begin));

  std::vector<DiffLine> diff;
  const auto removed = [&](std::int64_t row) {
    diff.push_back({DiffLine::Kind::removed, begin + static_cast<std::size_t>(row) + 1,
                    std::string(a[static_cast<std::size_t>(row)])});
  };
  const auto added = [&](std::int64_t column) {
    diff.push_back({DiffLine::Kind::added, begin + static_cast<std::size_t>(column) + 1,
                    std::string(b[static_cast<std::size_t>(column)])});
  };
  const auto trace = trace_of(a, b);
  if (trace.empty()) {
    for (std::size_t i = 0; i < a.size(); ++i) removed(static_cast<std::int64_t>(i));
    for (std::size_t i = 0; i < b.size(); ++i) added(static_cast<std::int64_t>(i));
    return diff;
  }
  // Back from the end: which change led to each diagonal.
  auto k = static_cast<std::int64_t>(a.size()) - static_cast<std::int64_t>(b.size());
  for (auto d = static_cast<std::int64_t>(trace.size()) - 1; d > 0; --d) {
    const auto& reached = trace[static_cast<std::size_t>(d - 1)];
    const auto at = [&](std::int64_t diagonal) -> std::int64_t {
      return diagonal < 1 - d || diagonal > d - 1 ? -1 : reached[static_cast<std::size_t>(diagonal + d - 1)];
    };
    if (at(k - 1) + 1 > at(k + 1)) {
      removed(at(k - 1));
      --k;
    } else {
      added(at(k + 1) - (k + 1));
      ++k;
    }
  }
  std::ranges::reverse(diff);
  return diff;
}

std::string difference_in_short(std::string_view before, std::string_view after) {
  const bool comments = without_comments(before) == without_comments(after);
  const std::vector<DiffLine> diff =
      comments ? script_diff(before, after) : script_diff(without_comments(before), without_comments(after));
  std::size_t gone = 0;
  for (const DiffLine& line : diff) gone += line.kind == DiffLine::Kind::removed;
  std::string text = comments ? "only comments and spaces differ, " : "";
  text += std::to_string(gone) + " lines removed, " + std::to_string(diff.size() - gone) + " added";
  const auto show = [&](DiffLine::Kind kind, const char* mark) {
    const auto found = std::ranges::find(diff, kind, &DiffLine::kind);
    if (found == diff.end()) return;
    const std::string_view line = trimmed(found->text);
    text += std::string(mark) + std::string(line.substr(0, longest_shown)) + (line.size() > longest_shown ? "..." : "");
  };
  show(DiffLine::Kind::removed, ": - ");
  show(DiffLine::Kind::added, gone ? " | + " : ": + ");
  return text;
}

}  // namespace stepladder
