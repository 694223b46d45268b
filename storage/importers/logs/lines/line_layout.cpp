// The fast path for lines that differ from an earlier one in their numbers only. It must give exactly what
// read_step_line gives, or nothing: a line whose meaning depends on more than its numbers isn't learned. The last
// layouts are kept in order of use.
#include "storage/importers/logs/lines/line_layout.h"

#include <algorithm>
#include <charconv>

#include "storage/importers/logs/lines/pair_meaning.h"
#include "storage/importers/logs/lines/pair_scanner.h"
#include "storage/importers/text.h"

namespace stepladder {
namespace {

constexpr std::size_t longest_line = 4096;
constexpr std::uint32_t most_digits = 15;  // so that a double holds the whole number
constexpr std::uint32_t most_exponent_digits = 2;
constexpr std::uint32_t moment_digits = 10;  // from here on a number may be a time since 1970, by its size

std::string_view without_end(std::string_view text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Whether the character joins digits to a date, a clock, a version or a thousand.
bool joins(char c) {
  return c == '-' || c == '/' || c == ':' || c == ',' || c == '_' || c == '.' || c == '+';
}

}  // namespace

// The number whose first digit is at `at`; without digits if there is no number. Runs for each number of a log.
[[gnu::always_inline]] inline LineLayout::Number LineLayout::number_at(std::string_view text, std::size_t at) {
  const char* const begin = text.data() + at;
  const char* const end = text.data() + text.size();
  const char* p = begin;
  const auto count_digits = [&] {
    const char* const start = p;
    while (p < end && is_digit(*p)) ++p;
    return static_cast<std::uint32_t>(p - start);
  };
  Number number{.at = static_cast<std::uint32_t>(at)};
  number.point = count_digits();
  if (p + 1 < end && *p == '.' && is_digit(p[1])) {
    ++p;
    number.fraction = count_digits();
  }
  if (p + 1 < end && (*p == 'e' || *p == 'E')) {
    const char* const letter = p;
    p += p[1] == '-' || p[1] == '+' ? 2 : 1;
    number.exponent = count_digits();
    if (number.exponent == 0) p = letter;
  }
  number.size = static_cast<std::uint32_t>(p - begin);
  return number;
}

bool LineLayout::next_number(std::string_view text, std::size_t from, Number& number) {
  std::size_t at = from;
  while (at < text.size() && !(is_digit(text[at]) && (at == 0 || !is_word(text[at - 1])))) ++at;
  if (at == text.size()) return false;
  number = number_at(text, at);
  return true;
}

bool LineLayout::learn(std::string_view text, const ReadLine& read, const ReadTrace& trace) {
  text = without_end(text);
  if (!read.says_step || !trace.learnable || text.size() > longest_line) return false;
  text_ = text;
  line_ = read.line;
  numbers_.clear();
  slots_.clear();
  Number number;
  for (std::size_t from = 0; next_number(text, from, number); from = number.at + number.size) {
    const std::size_t end = number.at + number.size;
    if (number.at > 0 && text[number.at - 1] == '%') return false;  // "%5" is code
    number.strict = (end + 1 < text.size() && joins(text[end]) && is_digit(text[end + 1])) ||
                    (number.at > 1 && joins(text[number.at - 1]) && is_digit(text[number.at - 2]));
    if (number.point > most_digits || number.exponent > most_exponent_digits) return false;
    if (number.point >= moment_digits && text[number.at] == '0') return false;
    numbers_.push_back(number);
  }
  for (int i = 0; i < trace.count; ++i) {
    const ReadTrace::Found& found = trace.found[i];
    for (Number& it : numbers_) it.fixed |= it.at >= found.at + found.size && it.at < found.end;  // N of "5/N"
    if (found.at > 0 && is_word(text[found.at - 1])) continue;  // "rank0", "step100": treated as letters
    Slot slot{
        .signed_ = text[found.at] == '-', .field = found.field, .into = value_of(found.field), .scale = found.scale};
    if (slot.field == Field::epoch) slot.into = &StepLine::epoch;
    if (slot.field == Field::moment) slot.into = &StepLine::at;
    const std::size_t start = found.at + (slot.signed_ ? 1 : 0), end = found.at + found.size;
    while (slot.number < numbers_.size() && numbers_[slot.number].at != start) ++slot.number;
    if (slot.number == numbers_.size()) return false;
    Number& first = numbers_[slot.number];
    first.strict |= slot.field == Field::moment;  // it is one by its size
    slot.compound = first.at + first.size != end;
    // The last of several numbers that make one value ends where the value ends.
    const bool ends = std::ranges::any_of(numbers_, [&](const Number& it) { return it.at + it.size == end; });
    if (!ends || (slot.compound && slot.signed_)) return false;
    slots_.push_back(slot);
  }
  if (!read.line.rate_text.empty()) {
    const std::size_t at = static_cast<std::size_t>(read.line.rate_text.data() - text.data());
    if (at + read.line.rate_text.size() > text.size()) return false;
    line_.rate_text = std::string_view(text_).substr(at, read.line.rate_text.size());
  }
  return true;
}

bool LineLayout::read(std::string_view text, StepLine& line) const {
  text = without_end(text);
  Places places;
  if (!match(text, places)) return false;
  line = line_;
  return std::ranges::all_of(slots_, [&](const Slot& slot) { return fill(slot, text, places, line); });
}

// Finds the numbers of `text`, if everything else is unchanged.
bool LineLayout::match(std::string_view text, Places& places) const {
  if (numbers_.size() > most_numbers || text.size() > longest_line) return false;
  const char* const end = text.data() + text.size();
  const char* p = text.data();
  const char* known = text_.data();
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    const Number& number = numbers_[i];
    const char* const number_begin = text_.data() + number.at;
    // The words between two numbers must be the same; the number of spaces in front of a number doesn't matter.
    while (known < number_begin && p < end && *p == *known) ++p, ++known;
    if (known < number_begin) {
      if (known == text_.data() || known[-1] != ' ' ||
          !std::all_of(known, number_begin, [](char c) { return c == ' '; }))
        return false;
    } else if (known > text_.data() && known[-1] == ' ') {
      while (p < end && *p == ' ') ++p;
    }
    if (p > text.data() && is_word(p[-1])) return false;
    const Number found = number_at(text, static_cast<std::size_t>(p - text.data()));
    if (!fits(number, found, text)) return false;
    places.at[i] = found.at;
    places.size[i] = found.size;
    p += found.size;
    known = number_begin + number.size;
  }
  return std::string_view(p, static_cast<std::size_t>(end - p)) ==
         std::string_view(known, static_cast<std::size_t>(text_.data() + text_.size() - known));
}

// Whether a number of another line can have the meaning of `known`.
bool LineLayout::fits(const Number& known, const Number& found, std::string_view text) const {
  if (found.point == 0 || found.point > most_digits) return false;
  if (std::max(found.point, known.point) >= moment_digits && (found.point != known.point || text[found.at] == '0'))
    return false;
  if ((found.fraction > 0) != (known.fraction > 0) || found.exponent != known.exponent) return false;
  if (known.strict && (found.point != known.point || found.fraction != known.fraction)) return false;
  return !known.fixed || text.substr(found.at, found.size) == std::string_view(text_).substr(known.at, known.size);
}

// Reads the value of one slot; false if the number cannot be that value.
bool LineLayout::fill(const Slot& slot, std::string_view text, const Places& places, StepLine& line) const {
  const std::uint32_t at = places.at[slot.number];
  const char* const from = text.data() + at;
  const char* const end = from + places.size[slot.number];
  double value = 0;
  std::int64_t whole = -1;
  if (slot.compound) {
    Pair pair;
    if (!PairScanner(text).number_at(at, pair)) return false;
    value = pair.value;
    whole = pair.whole;
  } else if (slot.into) {
    std::from_chars(from - (slot.signed_ ? 1 : 0), end, value);
  } else {
    std::from_chars(from, end, whole);
  }
  if (slot.into) {
    line.*slot.into = value * slot.scale;
    if (slot.field == Field::moment) return line.at >= 1e9 && line.at < 1e10;
    return (slot.field != Field::time && slot.field != Field::elapsed) || value < 1e9;  // else it may be a moment
  }
  if (slot.field == Field::step) line.step = whole;
  if (slot.field == Field::rank) line.rank = whole;
  return whole >= 0 && (slot.field == Field::step || slot.field == Field::rank);
}

bool LineLayouts::read(std::string_view text, StepLine& line) {
  for (std::size_t i = 0; i < count_; ++i) {
    if (!layouts_[order_[i]].read(text, line)) continue;
    std::rotate(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(i),
                order_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return true;
  }
  return false;
}

void LineLayouts::learn(std::string_view text, const ReadLine& read, const ReadTrace& trace) {
  // Replaces the layout that hasn't fitted for longest.
  count_ = std::min(count_, most - 1);
  if (!layouts_[order_[count_]].learn(text, read, trace)) return;
  std::rotate(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(count_),
              order_.begin() + static_cast<std::ptrdiff_t>(count_) + 1);
  ++count_;
}

namespace {

// Whether it is a word that prose usually has and a program's step line doesn't.
bool is_prose(std::string_view word) {
  return one_of(
      word, {"the",    "was",    "were",  "is",    "are",   "we",   "our", "that", "this", "which", "because", "when",
             "if",     "should", "would", "could", "you",   "your", "my",  "i",    "it's", "def",   "return",  "print",
             "import", "assert", "than",  "vs",    "there", "been", "had", "has",  "gets", "goes"});
}

}  // namespace

std::size_t prose_at(std::string_view line) {
  std::size_t at = 0;
  const std::size_t behind_last = line.rfind(')') + 1;  // 0: there is none
  while (at < line.size()) {
    // A remark on a number, "4.80 (best, was 4.90)", makes no prose of the line.
    while (at < line.size() && !is_alpha(line[at]))
      at = line[at] == '(' && at < behind_last ? line.find(')', at) : at + 1;
    const std::size_t start = at;
    while (at < line.size() && (is_alpha(line[at]) || line[at] == '\'')) ++at;
    if (at - start > 7 || at == start) continue;
    // Part of a longer name: "loss_if", "is/loss", "I0701".
    if ((start > 0 && (line[start - 1] == '_' || line[start - 1] == '/' || line[start - 1] == '-')) ||
        (at < line.size() &&
         (line[at] == '_' || line[at] == '/' || line[at] == '=' || line[at] == ':' || is_digit(line[at]))))
      continue;
    if (at + 1 < line.size() && line[at] == ' ' && line[at + 1] == '=') continue;  // "i = 5"
    char buffer[8];
    std::transform(line.begin() + static_cast<std::ptrdiff_t>(start), line.begin() + static_cast<std::ptrdiff_t>(at),
                   buffer, lower);
    if (is_prose({buffer, at - start})) return start;
  }
  return std::string_view::npos;
}

std::size_t doubt_at(std::string_view line, bool is_record) {
  const std::size_t code = code_at(line);
  return is_record ? code : std::min(code, prose_at(line));
}

bool is_table_row(std::string_view line) {
  line = trimmed(line);
  return !line.empty() && ((line.front() == '|' && line.back() == '|') || line.front() == '<' ||
                           line.find("</") != std::string_view::npos);
}

bool names_validation(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    while (at < text.size() && !is_alpha(text[at])) ++at;
    const std::size_t start = at;
    while (at < text.size() && is_word(text[at])) ++at;
    if (at - start > 12 || at == start) continue;
    if (at < text.size() && (text[at] == '.' || text[at] == '/')) continue;
    char buffer[12];
    std::transform(text.begin() + static_cast<std::ptrdiff_t>(start), text.begin() + static_cast<std::ptrdiff_t>(at),
                   buffer, lower);
    const std::string_view word(buffer, at - start);
    if ((is_validation(word) && word != "tel") ||
        one_of(word, {"evaluating", "evaluate", "validating", "validate", "testing"}))
      return true;
  }
  return false;
}

std::size_t code_at(std::string_view line) {
  static constexpr std::string_view marks[] = {
      "print(", "f\"", "f'", "{step", "{loss", "{iter", "==",    "+=", "-=", "%d", "%f",       ":.", "def ",
      "self.",  "<<",  "%5", "():",   "//",    "->",    ".item", "&&", "%.", "%4", "#include", "{.", "`"};
  constexpr std::size_t none = std::string_view::npos;
  std::size_t first = none;
  for (const std::string_view mark : marks) {
    const std::size_t at = line.find(mark);
    if (at == none) continue;
    // Progress bars hold runs of '=' and '-': [=====>...], |---->
    if (mark == "==" && (line.find("[=") != none || line.find("===") != none)) continue;
    if (mark == "->" && at > 0 && line[at - 1] == '-') continue;
    first = std::min(first, at);
  }
  // A string, a comment, an entry of a list, { epoch: 1 } of a script: the whole line.
  const std::string_view text = trimmed(line);
  if (text.starts_with('"') || text.starts_with("# ")) return 0;
  if ((text.starts_with("- ") || text.starts_with("* ")) && !text.starts_with("- INFO")) return 0;
  if (const std::string_view inner = trimmed(text.substr(std::min<std::size_t>(1, text.size())));
      text.starts_with('{') && !inner.empty() && is_alpha(inner.front()) && !is_digit(text.back()) &&
      !is_alpha(text.back()))
    return 0;
  const auto assigns = [](std::string_view words) { return words.find(" = ") != none; };
  if (const std::size_t comment = line.find(" #"); comment != none && assigns(line.substr(0, comment)))
    return 0;  // "loss = 0.0  # step 0"
  if (text.starts_with("for (") || (text.ends_with("{") && text.find('(') != none)) return 0;
  if (!text.empty() && text.back() == ';' && (text.find('(') != none || assigns(text))) return 0;
  // write("step 2"), f({...}), Output(step=2), --steps 2000.
  for (std::size_t at = 1; at + 1 < line.size() && at < first; ++at) {
    if (line[at] == '(' && is_word(line[at - 1]) &&
        (line[at + 1] == '"' || line[at + 1] == '\'' || line[at + 1] == '{'))
      return at;
    if (line[at] == '(' && is_word(line[at - 1])) {
      std::size_t name = at + 1;
      while (name < line.size() && is_word(line[name])) ++name;
      if (name > at + 1 && name < line.size() && line[name] == '=') return at;
    }
    if (line[at] == '-' && line[at - 1] == '-' && is_alpha(line[at + 1]) && (at == 1 || line[at - 2] == ' ')) return at;
  }
  return first;
}

}  // namespace stepladder
