// Three ways in which one record spans lines: indented values, JSON objects, rows of a table. Only one is open at a
// time, and each is bounded in size. The joined text is read by read_step_line like any printed line.
#include "storage/importers/logs/lines/line_joiner.h"

#include <algorithm>

#include "storage/importers/logs/lines/line_doubt.h"
#include "storage/importers/logs/lines/pair_meaning.h"
#include "storage/importers/text.h"
#include "storage/number_text.h"

namespace stepladder {
namespace {

constexpr std::size_t longest_joined = 16384;
constexpr std::size_t longest_header = 1000;
constexpr std::size_t most_columns = 64;

// "0:         Train loss: 8.5": srun puts the process's number in front of the indented text.
std::string_view without_rank(std::string_view line) {
  std::size_t digits = 0;
  while (digits < line.size() && digits < 6 && is_digit(line[digits])) ++digits;
  return digits > 0 && line.substr(digits).starts_with(": ") ? line.substr(digits + 2) : line;
}

// "    train/CrossEntropyLoss=12.18": indented, a name and a value.
std::string_view value_below(std::string_view line) {
  line = without_rank(line);
  if (line.empty() || !is_space(line.front())) return {};
  const std::string_view text = trimmed(line);
  const std::size_t sign = text.find_first_of(":=");
  if (sign == std::string_view::npos || sign == 0 || sign + 1 >= text.size() || text.size() > 300) return {};
  const std::size_t open = text.find_first_of("[{(|");
  const bool is_of_name = open < sign && text[open] == '(' && text[sign - 1] == ')';  // "optim/LR (group 0)=1e-5"
  return open < sign && !is_of_name ? std::string_view() : text;
}

Field field_of(std::string_view name) {
  const std::string assigned = std::string(name) + " = 0";
  PairScanner scanner(assigned);
  Pair pair, last;
  while (scanner.next(pair)) last = pair;
  return meaning_of(last).field;
}

// "loss: 9.8": a name and a number, and nothing else. The name of what a step counts ends the block.
std::string_view plain_value(std::string_view line) {
  const std::string_view text = trimmed(line);
  const std::size_t sign = text.find_first_of(":=");
  if (sign == std::string_view::npos || sign == 0 || !is_alpha(text.front())) return {};
  const std::string_view name = trimmed(text.substr(0, sign));
  const auto is_of_name = [](char c) { return is_word(c) || c == ' ' || c == '/' || c == '.' || c == '-'; };
  if (!std::ranges::all_of(name, is_of_name) || !parse_number<double>(trimmed(text.substr(sign + 1)))) return {};
  return field_of(name) == Field::step ? std::string_view() : text;
}

// "name": 3, 'name': 'text', "name": null
bool is_member(std::string_view text) {
  if (text.size() < 5 || (text.front() != '"' && text.front() != '\'')) return false;
  const char end[] = {text.front(), ':'};
  const std::size_t colon = text.find(std::string_view(end, 2));
  if (colon == std::string_view::npos) return false;
  const std::string_view value = trimmed(text.substr(colon + 2), " \t,");
  return !value.empty() &&
         (is_digit(value.front()) || value.front() == '-' || value.front() == text.front() ||
          one_of(value, {"null", "true", "false", "NaN", "Infinity", "{", "[]", "{}", "None", "True", "False", "nan"}));
}

bool has_bars(std::string_view line) {
  return line.find('|') != std::string_view::npos;
}

// The line with bars and dashes in place of the signs of a drawn box, U+2500 to U+257F.
std::string without_box(std::string_view line) {
  std::string text(line);
  for (std::size_t at = text.find('\xE2'); at != std::string::npos; at = text.find('\xE2', at + 1)) {
    const std::string_view sign = std::string_view(text).substr(at, 3);
    if (sign.starts_with("\xE2\x94") || sign.starts_with("\xE2\x95"))
      text.replace(at, 3, one_of(sign, {"\u2502", "\u2503", "\u2551"}) ? "|" : "-");
  }
  return text;
}

// Cells between bars, which may be empty; between tabs, runs of spaces, or single ones.
void split_cells(std::string_view line, std::vector<std::string_view>& cells, std::size_t wanted) {
  const auto split = [&](std::string_view separator) {
    cells.clear();
    std::string_view rest = trimmed(line, " ");
    while (!rest.empty() && cells.size() < most_columns) {
      const std::size_t end = std::min(rest.find(separator), rest.size());
      if (const std::string_view cell = trimmed(rest.substr(0, end)); !cell.empty()) cells.push_back(cell);
      rest.remove_prefix(std::min(end + separator.size(), rest.size()));
    }
  };
  if (has_bars(line)) {
    std::string_view rest = trimmed(line);
    if (rest.size() > 1 && rest.front() == '|') rest = rest.substr(1, rest.size() - 1 - (rest.back() == '|'));
    cells.clear();
    while (cells.size() < most_columns) {
      const std::size_t end = rest.find('|');
      cells.push_back(trimmed(rest.substr(0, end)));
      if (end == std::string_view::npos) return;
      rest.remove_prefix(end + 1);
    }
    return;
  }
  for (const std::string_view separator : {"\t", "  ", " "}) {
    if (line.find(separator) == std::string_view::npos) continue;
    split(separator);
    if (wanted == 0 ? cells.size() > 1 : cells.size() == wanted) return;
  }
}

// A cell without a number. "None" and the like are words that a reader of pairs knows.
bool is_empty(std::string_view cell) {
  return one_of(cell, {"", "-", "\u2013", "\u2014", "n/a", "N/A"});
}

bool is_value(std::string_view cell) {
  if (is_empty(cell) || one_of(cell, {"No log", "nan", "NaN", "inf", "None"})) return true;
  if (!is_digit(cell.front()) && cell.front() != '-' && cell.front() != '.') return false;
  TextCursor text(cell);
  double value = 0;
  if (!text.take(value)) return false;
  const std::string_view rest = text.rest();
  return rest.empty() || unit_of(rest).known || rest.find_first_not_of("0123456789:,.") == std::string_view::npos;
}

}  // namespace

std::string LineJoiner::take_joined() {
  complete_ = false;
  return std::exchange(joined_, {});
}

void LineJoiner::end() {
  complete_ = open_block_;
  open_block_ = open_object_ = false;
}

void LineJoiner::open_block(std::string_view line) {
  joined_ = trimmed(line);
  open_block_ = true;
  block_lines_ = 0;
  is_plain_ = false;
  const std::size_t sign = joined_.find_first_of(":=");
  counts_only_ = sign != std::string::npos && joined_.find_first_not_of("0123456789/, ", sign + 1) == std::string::npos;
}

bool LineJoiner::take(std::string_view line) {
  if (open_block_) {
    std::string_view value = value_below(line);
    if (value.empty() && counts_only_) {
      value = plain_value(line);
      is_plain_ |= !value.empty();
    }
    if (!value.empty() && joined_.size() + value.size() < longest_joined) {
      joined_.append(" | ").append(value);
      ++block_lines_;
      return true;
    }
    open_block_ = false;
    complete_ = true;
    return false;
  }
  const std::string_view text = trimmed(line);
  if (text.empty()) return false;
  if (take_object(text)) return true;
  return !columns_.empty() && take_row(line);
}

// An object opens with '{' at a line's end; each line in it has a name in quotes. An inner object starts over.
bool LineJoiner::take_object(std::string_view text) {
  if (text == "{" || text.ends_with("]{") || (text.front() == '"' && text.ends_with(": {"))) {
    joined_.clear();
    open_object_ = true;
    return text.size() == 1;
  }
  // "{'lr': 0.1,", as pprint prints the first line, and "'loss': 4.9}" the last.
  const bool is_first = text.starts_with("{'") && text.ends_with(',') && is_member(text.substr(1));
  if (is_first) joined_ = text;
  if (is_first) return open_object_ = true;
  if (!open_object_) return false;
  const bool is_last = text.front() == '\'' && text.ends_with('}');
  if (is_member(text.substr(0, text.size() - is_last)) && joined_.size() + text.size() < longest_joined) {
    joined_.append(joined_.empty() ? "{" : " ").append(text);
    open_object_ = !is_last;
    complete_ = is_last;
    return true;
  }
  open_object_ = false;
  if (text.front() == '}' && text.size() < 3 && !joined_.empty()) {
    joined_.append("}");
    return complete_ = true;
  }
  joined_.clear();
  return false;
}

bool LineJoiner::open_table(std::string_view printed) {
  if (printed.size() > longest_header || printed.find_first_of(":={`") != std::string_view::npos) return false;
  const std::string line = without_box(printed);
  if (!contains_word(line, "loss")) return false;
  if (!contains_word(line, "step") && !contains_word(line, "epoch") && !contains_word(line, "iter")) return false;
  if (prose_at(line) != std::string_view::npos) return false;
  split_cells(line, cells_, 0);
  bool counts = false, measures = false;
  for (const std::string_view cell : cells_) {
    if (cell.empty() || !is_alpha(cell.front()) || std::ranges::count(cell, ' ') > 3) return false;
    const Field field = field_of(cell);
    counts |= field == Field::step || field == Field::epoch;
    measures |= field == Field::loss || field == Field::val_loss;
  }
  if (!counts || !measures) return false;
  columns_.clear();
  for (const std::string_view cell : cells_)
    columns_.push_back({std::string(cell), static_cast<std::size_t>(cell.data() - line.data())});
  return true;
}

// Of a row in which blanks are cells, the cells stand where their columns' names do. Adds the empty ones; false if a
// cell is below none or several names.
bool LineJoiner::align_cells(std::string_view line) {
  std::vector<std::string_view> aligned(columns_.size());
  for (const std::string_view cell : cells_) {
    const auto begin = static_cast<std::size_t>(cell.data() - line.data());
    std::size_t at = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].at >= begin + cell.size() || begin >= columns_[i].at + columns_[i].name.size()) continue;
      if (at < columns_.size()) return false;
      at = i;
    }
    if (at == columns_.size() || !aligned[at].empty()) return false;
    aligned[at] = cell;
  }
  cells_ = std::move(aligned);
  return true;
}

bool LineJoiner::take_row(std::string_view printed) {
  const std::string line = without_box(printed);
  if (line.find_first_not_of(has_bars(line) ? "-=+ \t|:" : "-=+ \t") == std::string_view::npos) return true;  // a rule
  split_cells(line, cells_, columns_.size());
  const bool has_values = std::ranges::all_of(cells_, is_value);
  const bool is_aligned = cells_.size() == columns_.size() ||
                          (has_values && !has_bars(line) && cells_.size() < columns_.size() && align_cells(line));
  if (!is_aligned || !has_values) {
    columns_.clear();
    return false;
  }
  joined_.clear();
  for (std::size_t i = 0; i < cells_.size(); ++i)
    if (!is_empty(cells_[i]))
      joined_.append(joined_.empty() ? "" : " | ").append(columns_[i].name).append("=").append(cells_[i]);
  return complete_ = true;
}

}  // namespace stepladder
