// Lays out every table of the command line. Widths count characters, not bytes. A table that is too wide first gets its
// names shortened in the middle, then loses columns in the order of `dropped_first`, and says so; then its text is
// wrapped. Below 60 columns each row becomes a small table of its own. Columns of numbers are never wrapped.
#include "app/cli/table.h"

#include <algorithm>
#include <numeric>
#include <sstream>
#include <string_view>
#include <utility>

#include "app/text/format.h"
#include "app/text/terminal_text.h"
#include "app/text/text_table.h"
#include "storage/analysis/plausibility.h"

namespace stepladder {
namespace {

using Row = std::vector<std::string>;

constexpr std::size_t narrowest = 8;         // that text is wrapped to
constexpr std::size_t shortest_name = 20;    // that names are shortened to before a column is dropped
constexpr std::size_t narrowest_table = 60;  // columns; below, each row is a record
constexpr std::size_t any_width = 1'000'000;
constexpr std::size_t note_indent = 4;  // of a note's further lines

// Heads of the columns that a narrow terminal loses, first to last.
constexpr std::string_view dropped_first[] = {
    "largest gap", "seed vs baseline", "seed tokens/s", "spread",        "range",        "median",      "max",
    "min",         "values",           "unit",          "device",        "what changed", "vs previous", "val loss",
    "why",         "factor",           "step time",     "95 % interval", "checkpoints",  "created",     "steps",
    "formula",     "shapes",           "FLOP/s",        "calls"};
constexpr std::string_view shortened[] = {"name", "what", "operator", "stage"};  // in the middle

// Words that a terminal shows in colour: verdicts, trust, states.
const std::pair<Colour, std::vector<std::string_view>> coloured_words[] = {
    {Colour::green, {"faster", "better", "trusted", "kept"}},
    {Colour::red, {"slower", "worse", "diverged", "impossible", "baseline impossible", "failed"}},
    {Colour::yellow, {"doubtful", "inconclusive", "interrupted", "stopped", "paused", "not comparable"}},
    {Colour::blue, {"running"}},
};

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

// The number of characters that a terminal shows, not of bytes.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

// Removes that many characters from the front and returns them.
std::string take(std::string& text, std::size_t characters) {
  std::size_t end = 0;
  while (end < text.size() && (!begins_character(text[end]) || characters-- > 0)) ++end;
  std::string front = text.substr(0, end);
  text.erase(0, end);
  return front;
}

// "a long na…the end": the middle is left out.
std::string shortened_in_the_middle(std::string text, std::size_t most) {
  const std::size_t all = width(text);
  if (all <= most) return text;
  const std::size_t end = (most - 1) / 2, front = most - 1 - end;
  std::string begin = take(text, front);
  take(text, all - front - end);
  return begin + "…" + text;
}

// A cell in the colour of the first word of the vocabulary that it names: "faster, doubtful" is doubtful.
std::string in_colour(const std::string& cell) {
  if (!shows_colour()) return cell;
  const std::string_view text = cell;
  for (const std::string_view grave : {"impossible", "doubtful", "diverged"})
    if (text.ends_with(grave) && text.size() > grave.size() && text[text.size() - grave.size() - 1] == ' ')
      return marked(cell, grave == "doubtful" ? Colour::yellow : Colour::red);
  const std::string_view word = text.substr(0, text.find_first_of(",:("));
  for (const auto& [colour, words] : coloured_words)
    for (const std::string_view known : words)
      if (word == known || (word.starts_with(known) && word.substr(known.size()).starts_with(' ')))
        return marked(cell, colour);
  if (const auto flag = std::ranges::find(flag_kinds, word, &FlagKind::name); flag != flag_kinds.end())
    return marked(cell, flag->trust == Trust::impossible ? Colour::red : Colour::yellow);
  return cell;
}

struct Layout {
  std::vector<std::size_t> widths;
  std::size_t between = 2;  // columns, in spaces

  std::size_t total() const { return std::accumulate(widths.begin(), widths.end(), between * (widths.size() - 1)); }
};

template <std::size_t n>
bool names(const std::string_view (&list)[n], const std::string& head) {
  return std::ranges::find(list, head) != std::end(list);
}

// Narrows the widest columns, each down to `least` of it; false if that isn't enough.
template <class Least>
bool narrow(Layout& layout, std::size_t columns, Least&& least) {
  std::vector<std::size_t>& widths = layout.widths;
  while (layout.total() > columns) {
    std::size_t widest = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i)
      if (widths[i] > least(i) && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
    if (widest == widths.size()) return false;
    --widths[widest];
  }
  return true;
}

void trim(std::string& line) {
  line.erase(line.find_last_not_of(' ') + 1);
}

// `colours`: the columns whose cells may be in colour.
std::string side_by_side(const Row& row, const Layout& layout, const std::vector<bool>& right,
                         const std::vector<bool>& colours) {
  const auto& [widths, between] = layout;
  std::vector<Row> cells;
  std::size_t height = 1;
  for (std::size_t i = 0; i < row.size(); ++i) {
    cells.push_back(wrap(row[i], widths[i]));
    height = std::max(height, cells.back().size());
  }
  std::string text;
  for (std::size_t at = 0; at < height; ++at) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string cell = at < cells[i].size() ? cells[i][at] : "";
      const std::string pad(widths[i] - std::min(widths[i], width(cell)), ' ');
      const std::string shown = colours[i] ? in_colour(cell) : cell;
      line += (i ? std::string(between, ' ') : "") + (right[i] ? pad + shown : shown + pad);
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

Layout layout_of(const std::vector<Row>& rows) {
  Layout layout{.widths = std::vector<std::size_t>(rows.front().size())};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) layout.widths[i] = std::max(layout.widths[i], width(row[i]));
  return layout;
}

std::size_t longest_word(const std::vector<Row>& rows, std::size_t column) {
  std::size_t longest = 0;
  for (const Row& row : rows) {
    std::istringstream words(row[column]);
    for (std::string word; words >> word;) longest = std::max(longest, width(word));
  }
  return longest;
}

void drop(std::vector<Row>& rows, std::vector<bool>& right, std::size_t column, std::string& dropped) {
  dropped += (dropped.empty() ? "" : ", ") + rows.front()[column];
  for (Row& row : rows) row.erase(row.begin() + std::ptrdiff_t(column));
  right.erase(right.begin() + std::ptrdiff_t(column));
}

// Makes a table with heads fit: shortens names, drops columns, wraps text. Returns the layout, and what was dropped.
Layout fitted(std::vector<Row>& rows, std::vector<bool>& right, std::size_t columns, std::string& dropped) {
  for (std::size_t i = rows.front().size(); i-- > 1;) {  // what no row has, nobody misses
    const auto is_empty = [i](const Row& row) { return row[i].empty() || row[i] == "-"; };
    std::string missed_by_nobody;
    if (std::all_of(rows.begin() + 1, rows.end(), is_empty)) drop(rows, right, i, missed_by_nobody);
  }
  const auto is_name = [&](std::size_t i) { return names(shortened, rows.front()[i]); };
  const auto long_name = [&](std::size_t i) { return is_name(i) ? shortest_name : any_width; };
  Layout layout = layout_of(rows);
  for (const std::string_view head : dropped_first) {
    if (narrow(layout, columns, long_name)) break;
    for (std::size_t i = rows.front().size(); i-- > 0;)
      if (rows.front()[i] == head) drop(rows, right, i, dropped);
    layout = layout_of(rows);
  }
  const auto whole_words = [&](std::size_t i) {
    return right[i] ? any_width : is_name(i) ? narrowest : std::max(narrowest, longest_word(rows, i));
  };
  const auto parts_of_words = [&](std::size_t i) { return right[i] ? any_width : narrowest; };
  while (!narrow(layout, columns, whole_words) && !narrow(layout, columns, parts_of_words) && rows.front().size() > 1) {
    drop(rows, right, rows.front().size() - 1, dropped);
    layout = layout_of(rows);
  }
  for (Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i)
      if (is_name(i) && &row != &rows.front()) row[i] = shortened_in_the_middle(row[i], layout.widths[i]);
  return layout;
}

// A note in lines of at most `columns`, further ones indented; its flag or verdict in colour.
std::string wrapped_note(const std::string& note, std::size_t columns) {
  const std::size_t indent = note.find_first_not_of(' ') == std::string::npos ? 0 : note.find_first_not_of(' ');
  std::string text;
  Row lines =
      columns > 2 * note_indent ? wrap(note.substr(indent), columns - indent - note_indent) : Row{note.substr(indent)};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t colon = i == 0 ? lines[i].find(": ") : std::string::npos;
    if (colon != std::string::npos) {
      const std::size_t comma = lines[i].rfind(", ", colon), begin = comma == std::string::npos ? 0 : comma + 2;
      lines[i] = lines[i].substr(0, begin) + in_colour(lines[i].substr(begin, colon - begin)) + lines[i].substr(colon);
    }
    text += std::string(indent + (i > 0 ? note_indent : 0), ' ') + lines[i] + "\n";
  }
  return text;
}

// A word that begins a command in backticks, with the rest of the command if that fits into a line.
std::string with_command(std::string word, std::istream& words, std::size_t most) {
  const auto is_open = [](const std::string& text) { return std::ranges::count(text, '`') % 2 == 1; };
  const std::istream::pos_type place = words.tellg();
  if (place == std::istream::pos_type(-1)) return word;
  std::string whole = word;
  while (is_open(whole) && width(whole) < most && words >> word) whole += " " + word;
  if (!is_open(whole) && width(whole) <= most) return whole;
  words.clear();
  words.seekg(place);
  return whole.substr(0, whole.find(' '));
}

}  // namespace

std::vector<std::string> wrap(const std::string& text, std::size_t most) {
  if (width(text) <= most) return {text};
  Row lines;
  std::string line;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    word = with_command(std::move(word), words, most);
    if (!line.empty() && width(line) + 1 + width(word) > most) lines.push_back(std::exchange(line, ""));
    while (width(word) > most) lines.push_back(take(word, most));
    if (!word.empty()) line += (line.empty() ? "" : " ") + word;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

std::string notes_text(const std::string& notes, std::size_t columns) {
  std::istringstream lines(harmless(notes));
  std::string text;
  for (std::string line; std::getline(lines, line);) text += wrapped_note(line, columns);
  return text;
}

std::string table(const std::vector<Row>& given, const std::vector<bool>& aligned, std::size_t columns) {
  std::vector<Row> rows = given;
  std::vector<bool> right = aligned;
  for (Row& row : rows) {
    for (std::string& cell : row) {
      cell = harmless(std::move(cell));
      std::ranges::replace_if(
          cell, [](char c) { return c == '\n' || c == '\t'; }, ' ');
    }
  }
  if (rows.empty()) return {};
  Layout layout = layout_of(rows);
  std::string dropped;
  const bool has_heads = right.size() > 2;
  if (columns > 0 && layout.total() > columns) {
    if (!has_heads)
      narrow(layout, columns, [](std::size_t) { return narrowest; });
    else if (columns < narrowest_table)
      return one_below_the_other(rows, columns);
    else
      layout = fitted(rows, right, columns, dropped);
  }
  std::vector<bool> colours(right.size(), true);
  for (std::size_t i = 0; i < right.size(); ++i) colours[i] = !has_heads || !names(shortened, rows.front()[i]);
  std::string text;
  for (const Row& row : rows)
    text += side_by_side(row, layout, right,
                         has_heads && &row == &rows.front() ? std::vector<bool>(right.size()) : colours);
  if (!dropped.empty()) text += notes_text("(a wider terminal also shows: " + dropped + ")", columns);
  return text;
}

std::string table(const TextTable& shown) {
  std::vector<Row> rows{shown.heads};
  rows.insert(rows.end(), shown.rows.begin(), shown.rows.end());
  return table(rows, shown.right);
}

}  // namespace stepladder
