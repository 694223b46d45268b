// Line difference of two scripts by their longest common sequence, for the flag `several-scripts` and `record diff`.
// Memory grows with the product of their changed parts, so beyond most_cells it gives one block.
#include "storage/speedrun/script_diff.h"

#include <algorithm>
#include <cstdint>

#include "storage/importers/text.h"

namespace stepladder {
namespace {

constexpr std::size_t most_cells = 16'000'000;  // two parts of 4,000 lines
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

  // The length of the longest common sequence behind each pair of places.
  const std::size_t columns = b.size() + 1;
  const bool is_whole = a.size() * b.size() > most_cells;
  std::vector<std::uint16_t> common(is_whole ? 0 : (a.size() + 1) * columns);
  const auto at = [&](std::size_t row, std::size_t column) -> std::uint16_t& { return common[row * columns + column]; };
  for (std::size_t row = a.size(); !is_whole && row-- > 0;)
    for (std::size_t column = b.size(); column-- > 0;)
      at(row, column) = a[row] == b[column] ? static_cast<std::uint16_t>(at(row + 1, column + 1) + 1)
                                            : std::max(at(row + 1, column), at(row, column + 1));
  std::vector<DiffLine> diff;
  for (std::size_t row = 0, column = 0; row < a.size() || column < b.size();) {
    const bool both = row < a.size() && column < b.size();
    if (both && !is_whole && a[row] == b[column])
      ++row, ++column;
    else if (column == b.size() || (both && (is_whole || at(row + 1, column) >= at(row, column + 1))))
      diff.push_back({DiffLine::Kind::removed, begin + row + 1, std::string(a[row])}), ++row;
    else
      diff.push_back({DiffLine::Kind::added, begin + column + 1, std::string(b[column])}), ++column;
  }
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
