// Lays out every table of the command line. Widths count characters, not bytes. A table that is too wide first loses
// space between columns, then wraps its text columns, then becomes one small table per row; columns of numbers are
// never wrapped.
#include "app/cli/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <sstream>
#include <utility>

#include "app/text/format.h"
#include "app/text/text_table.h"

namespace stepladder {
namespace {

using Row = std::vector<std::string>;

constexpr std::size_t narrowest = 8;  // that text is wrapped to

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

// The number of characters that a terminal shows, not of bytes.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

// Removes that many characters from the front and returns them.
std::string take(std::string& text, std::size_t characters) {
  std::size_t end = 0;
  while (end < text.size() && (!begins_character(text[end]) || characters-- > 0)) ++end;
  std::string front = text.substr(0, end);
  text.erase(0, end);
  return front;
}

Row wrapped(const std::string& text, std::size_t most) {
  if (width(text) <= most) return {text};
  Row lines;
  std::string line;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!line.empty() && width(line) + 1 + width(word) > most) lines.push_back(std::exchange(line, ""));
    while (width(word) > most) lines.push_back(take(word, most));
    if (!word.empty()) line += (line.empty() ? "" : " ") + word;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

struct Layout {
  std::vector<std::size_t> widths;
  std::size_t between = 2;  // columns, in spaces

  std::size_t total() const { return std::accumulate(widths.begin(), widths.end(), between * (widths.size() - 1)); }
};

// Narrows the widest columns of text; false if that isn't enough.
bool narrow(Layout& layout, const std::vector<bool>& right, std::size_t columns) {
  std::vector<std::size_t>& widths = layout.widths;
  while (layout.total() > columns) {
    std::size_t widest = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i)
      if (!right[i] && widths[i] > narrowest && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
    if (widest == widths.size()) return false;
    --widths[widest];
  }
  return true;
}

bool fit(Layout& layout, const std::vector<bool>& right, std::size_t columns) {
  const Layout natural = layout;
  for (layout.between = 2; layout.between > 0; --layout.between) {
    layout.widths = natural.widths;
    if (narrow(layout, right, columns)) return true;
  }
  return false;
}

void trim(std::string& line) {
  line.erase(line.find_last_not_of(' ') + 1);
}

std::string side_by_side(const Row& row, const Layout& layout, const std::vector<bool>& right) {
  const auto& [widths, between] = layout;
  std::vector<Row> cells;
  std::size_t height = 1;
  for (std::size_t i = 0; i < row.size(); ++i) {
    cells.push_back(wrapped(row[i], widths[i]));
    height = std::max(height, cells.back().size());
  }
  std::string text;
  for (std::size_t at = 0; at < height; ++at) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string cell = at < cells[i].size() ? cells[i][at] : "";
      const std::string pad(widths[i] - width(cell), ' ');
      line += (i ? std::string(between, ' ') : "") + (right[i] ? pad + cell : cell + pad);
    }
    trim(line);
    text += line + "\n";
  }
  return text;
}

// Each row as a table of its own with two columns.
std::string one_below_the_other(const std::vector<Row>& rows, std::size_t columns) {
  std::string text;
  for (std::size_t r = 1; r < rows.size(); ++r) {
    std::vector<Row> pairs;
    for (std::size_t i = 0; i < rows[r].size(); ++i)
      if (!rows[r][i].empty()) pairs.push_back({rows.front()[i], rows[r][i]});
    text += (r > 1 ? "\n" : "") + table(pairs, {false, false}, columns);
  }
  return text;
}

}  // namespace

std::size_t terminal_columns() {
  winsize size = {};
  return ::isatty(STDOUT_FILENO) && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::string table(const std::vector<Row>& given, const std::vector<bool>& right, std::size_t columns) {
  std::vector<Row> rows = given;
  Layout layout{.widths = std::vector<std::size_t>(right.size())};
  for (Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = harmless(std::move(row[i]));
      std::replace_if(
          row[i].begin(), row[i].end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
      layout.widths[i] = std::max(layout.widths[i], width(row[i]));
    }
  }
  if (columns > 0 && !fit(layout, right, columns) && right.size() > 2) return one_below_the_other(rows, columns);
  std::string text;
  for (const Row& row : rows) text += side_by_side(row, layout, right);
  return text;
}

std::string table(const TextTable& shown) {
  std::vector<Row> rows{shown.heads};
  rows.insert(rows.end(), shown.rows.begin(), shown.rows.end());
  return table(rows, shown.right);
}

}  // namespace stepladder
