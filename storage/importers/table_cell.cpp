// The unit of a cell is read by the same words as that of a number in a log (pair_meaning.h). A cell that has two
// readings, or a unit that contradicts its column's, isn't read: the reason is in CellNumber::why.
#include "storage/importers/table_cell.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "storage/importers/text.h"

namespace stepladder {
namespace {

constexpr std::string_view not_a_number = "is not a number";

// Signs between groups of three digits that can't be a decimal sign: blanks of three kinds, ' and _.
constexpr std::string_view group_signs[] = {" ", "\xC2\xA0", "\xE2\x80\xAF", "\xE2\x80\x89", "'", "\xE2\x80\x99", "_"};

std::size_t group_sign_at(std::string_view text) {
  for (const std::string_view sign : group_signs)
    if (text.starts_with(sign) && text.size() > sign.size() && is_digit(text[sign.size()])) return sign.size();
  return 0;
}

// The digits that a cell begins with, and the signs between them.
struct Digits {
  std::vector<std::string_view> parts;  // digits; the first may be empty: ".5"
  std::string signs;                    // between the parts: '.', ',' or ' ' for a group_sign
  std::size_t end = 0;                  // in the cell

  bool is_group(std::size_t sign) const {
    const std::string_view first = parts[0];
    return parts[sign + 1].size() == 3 && (sign > 0 || (!first.empty() && first.size() <= 3 && first[0] != '0'));
  }
  bool are_groups(std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i)
      if (signs[i] != signs[0] || !is_group(i)) return false;
    return true;
  }
};

Digits digits_of(std::string_view cell) {
  Digits found;
  std::size_t at = !cell.empty() && (cell[0] == '-' || cell[0] == '+') ? 1 : 0;
  while (true) {
    const std::size_t begin = at;
    while (at < cell.size() && is_digit(cell[at])) ++at;
    found.parts.push_back(cell.substr(begin, at - begin));
    if (at >= cell.size()) break;
    const bool digit_follows = at + 1 < cell.size() && is_digit(cell[at + 1]);
    if ((cell[at] == '.' || cell[at] == ',') && digit_follows) {
      found.signs += cell[at++];
    } else if (const std::size_t size = group_sign_at(cell.substr(at)); size > 0 && !found.parts[0].empty()) {
      found.signs += ' ';
      at += size;
    } else {
      break;
    }
  }
  found.end = at;
  return found;
}

// The sign before the decimals; 0: there are none; '?': the one sign that it has may be either; 'x': it isn't a number.
char decimal_sign(const Digits& digits, bool has_exponent) {
  const std::string& signs = digits.signs;
  if (signs.empty()) return 0;
  const char last = signs.back();
  if (signs.size() == 1 && last != ' ') return digits.is_group(0) && !has_exponent ? '?' : last;
  if (last != signs[0]) return digits.are_groups(signs.size() - 1) && last != ' ' ? last : 'x';
  return digits.are_groups(signs.size()) ? 0 : 'x';
}

bool has_exponent(std::string_view behind) {
  return behind.size() > 1 && lower(behind[0]) == 'e' && !is_alpha(behind[1]);
}

std::string joined(std::string_view cell, const Digits& digits, bool has_decimals) {
  std::string text(!cell.empty() && cell[0] == '-' ? "-" : "");
  for (std::size_t i = 0; i < digits.parts.size(); ++i) {
    if (has_decimals && i + 1 == digits.parts.size()) text += '.';
    text += digits.parts[i];
  }
  return text.append(cell.substr(digits.end));
}

enum class Reading : std::uint8_t { decimals, group, two };

// Of a cell with one sign, and three digits behind it.
Reading reading_of(char sign, const NumberStyle& style, Counts counts) {
  if (sign == '.') {
    if (style.is_unknown() || style.has_point()) return Reading::decimals;
    return style.has_comma() && counts != Counts::other ? Reading::group : Reading::two;
  }
  if (style.has_comma()) return Reading::decimals;
  if (style.has_point() || counts == Counts::whole) return Reading::group;
  if (!style.is_unknown()) return Reading::two;
  if (style.is_comma_likely()) return counts == Counts::other ? Reading::decimals : Reading::two;
  return counts == Counts::rate ? Reading::group : Reading::two;
}

// The cell with a point before its decimals and without signs between its groups; why it isn't read otherwise.
std::string plain_digits(std::string_view cell, const NumberStyle& style, Counts counts, std::string& why) {
  const Digits digits = digits_of(cell);
  const char sign = decimal_sign(digits, has_exponent(cell.substr(digits.end)));
  if (sign == 'x') return why = not_a_number, std::string();
  if (sign != '?') return joined(cell, digits, sign != 0);
  const Reading reading = reading_of(digits.signs[0], style, counts);
  if (reading == Reading::two) {
    why = "may be " + joined(cell.substr(0, digits.end), digits, true) + " or " +
          joined(cell.substr(0, digits.end), digits, false);
  }
  return joined(cell, digits, reading == Reading::decimals);
}

bool is_absent(std::string_view cell) {
  if (cell.empty()) return true;
  if (cell == "-" || cell == "--" || cell == "\xE2\x80\x93" || cell == "\xE2\x80\x94" || cell == "?") return true;
  return equal_in_lower(cell, "none") || equal_in_lower(cell, "null") || equal_in_lower(cell, "na") ||
         equal_in_lower(cell, "n/a");
}

// The unit of a name: "in ms", "tokens per second", "sec."; empty: it isn't one.
std::string unit_in_name(std::string_view text) {
  text = trimmed(text, " \t.");
  if (text.starts_with("in ")) text = trimmed(text.substr(3));
  std::string unit(text);
  if (const std::size_t per = unit.find(" per "); per != std::string::npos) unit.replace(per, 5, "/");
  const std::size_t space = unit.find(' ');
  const bool is_unit =
      printed_unit(unit).known && (space == std::string::npos || unit_of(unit.substr(0, space)).scale > 1);
  return is_unit ? unit : std::string();
}

// "x1e-4", "1e3": the cells are multiples of it.
bool is_factor(std::string_view text) {
  for (const std::string_view sign : {"x", "*", "\xC3\x97"})
    if (text.starts_with(sign)) text = trimmed(text.substr(sign.size()));
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// The meaning of a plain name; the scanner of log lines reads it as "name = 0".
Meaning meaning_of_name(std::string_view name, std::string_view unit = {}) {
  const std::string assigned = std::string(name) + " = 0";
  PairScanner scanner(assigned);
  Pair pair, last;
  while (scanner.next(pair)) last = pair;
  if (!unit.empty()) last.unit = unit;
  return meaning_of(last);
}

bool is_time(Field field) {
  return field == Field::time || field == Field::elapsed || field == Field::mean_time;
}

}  // namespace

void NumberStyle::learn(std::string_view cell) {
  if (cell.find(',') == std::string_view::npos && (points_ || cell.find('.') == std::string_view::npos)) return;
  const Digits digits = digits_of(cell);
  if (digits.parts[0].empty() || digits.signs.empty()) return;
  const std::string_view behind = cell.substr(digits.end);
  if (!behind.empty() && (behind[0] == '.' || behind[0] == ',' || behind[0] == ':' || behind[0] == '-')) return;
  const char sign = decimal_sign(digits, has_exponent(behind));
  // A sign that comes twice is one between groups, so the other one is before decimals.
  const bool is_grouped_by_points = sign == 0 && digits.signs[0] == '.';
  const bool is_grouped_by_commas = sign == 0 && digits.signs[0] == ',';
  points_ |= sign == '.' || is_grouped_by_commas;
  commas_ |= sign == ',' || is_grouped_by_points;
}

CellNumber read_cell(std::string_view cell, const NumberStyle& style, Counts counts) {
  CellNumber read;
  if (is_absent(cell)) return read;
  const char* const end = cell.data() + cell.size();
  const auto [stop, error] = std::from_chars(cell.data() + (cell.front() == '+' ? 1 : 0), end, read.value);
  if (error == std::errc() && stop == end && (!style.has_comma() || cell.find('.') == std::string_view::npos))
    return read;
  read.value = missing;
  const std::string plain = plain_digits(cell, style, counts, read.why);
  if (!read.why.empty()) return read.is_number = read.why != not_a_number, read;
  PairScanner scanner(plain);
  Pair pair;
  const bool is_whole_cell = scanner.next(pair) && pair.key.empty() && pair.end == plain.size() &&
                             (pair.at == 0 || pair.wrapped) && (pair.total < 0 || counts == Counts::whole);
  if (!is_whole_cell || std::isnan(pair.value)) return read.is_number = false, read.why = not_a_number, read;
  read.value = pair.value;
  read.unit = pair.unit;
  read.is_clock = pair.clock;
  return read;
}

std::string plain_column_name(std::string_view name) {
  name = trimmed(name);
  std::string unit;
  std::string before;  // words in brackets, which say more about the name
  constexpr std::string_view opening = "([{<", closing = ")]}>";
  for (int brackets = 0; brackets < 3 && !name.empty(); ++brackets) {
    const std::size_t kind = closing.find(name.back());
    const std::size_t open = kind == std::string_view::npos ? kind : name.rfind(opening[kind]);
    if (open == std::string_view::npos || open == 0) break;
    const std::string_view inside = trimmed(name.substr(open + 1, name.size() - open - 2));
    const std::string named = unit_in_name(inside);
    if (!named.empty() && unit.empty())
      unit = named;
    else if (is_factor(inside))
      return std::string();
    else if (std::ranges::all_of(inside, [](char c) { return is_alpha(c) || c == ' ' || c == '_'; }))
      before += std::string(inside) + " ";
    name = trimmed(name.substr(0, open));
  }
  if (const std::size_t sign = name.find_last_of(",;:|"); unit.empty() && sign != std::string_view::npos && sign > 0) {
    unit = unit_in_name(name.substr(sign + 1));
    if (!unit.empty()) name = trimmed(name.substr(0, sign));
  }
  std::string plain = before + std::string(name);
  std::ranges::replace_if(
      plain, [](char c) { return c == ',' || c == ';' || c == '|'; }, ' ');
  return unit.empty() ? plain : plain + " (" + unit + ")";
}

TableColumn::TableColumn(std::string_view name) : name_(plain_column_name(name)) {
  if (!name_.empty()) meaning_ = named_ = meaning_of_name(name_);
}

Counts TableColumn::counts() const {
  switch (meaning_.field) {
    case Field::step:
    case Field::batch:
    case Field::batch_size:
      return Counts::whole;
    case Field::tokens:
      return meaning_.scale == 1 ? Counts::whole : Counts::other;
    case Field::throughput:
      return meaning_.scale == 1 && meaning_.rate != RateLabel::iterations ? Counts::rate : Counts::other;
    default:
      return Counts::other;
  }
}

CellNumber TableColumn::read(std::string_view cell, const NumberStyle& style) {
  CellNumber number = read_cell(cell, style, counts());
  if (!number.why.empty() || is_missing(number.value)) return number;
  if (!take_unit(number)) number.value = missing;
  return number;
}

// Brings the number into the column's unit. False if it has none that fits; then `why` says so.
bool TableColumn::take_unit(CellNumber& number) {
  const auto refuse = [&](std::string why) { return number.why = std::move(why), false; };
  if (number.is_clock) {
    if (is_time(meaning_.field)) return take_time(number, TimeUnit::s);
    number.is_number = false;
    return refuse(std::string(not_a_number));
  }
  if (number.unit.empty()) {
    if (has_units_) return refuse("has no unit, unlike the cells above it");
    has_bare_ = true;
    if (meaning_.field == Field::throughput || meaning_.field == Field::tokens) number.value *= named_.scale;
    return true;
  }
  const Unit unit = printed_unit(number.unit);
  const std::string misfit = "has the unit " + number.unit + ", which doesn't fit the column";
  const bool is_multiple = unit.scale != 1 && !unit.other && unit.rate == RateLabel::none;  // "k"
  if (meaning_.field == Field::none) {
    if (unit.time != TimeUnit::unknown && !unit.per_step) return take_time(number, unit.time);
    if (is_multiple) return number.value *= unit.scale, true;
    if (has_bare_ || (has_units_ && unit_ != number.unit)) return refuse("has another unit than the cells above it");
    has_units_ = true;
    unit_ = number.unit;
    return true;
  }
  const Meaning given = meaning_of_name(name_, number.unit);
  if (given.field != meaning_.field || (unit.scale != 1 && given.scale != unit.scale)) return refuse(misfit);
  if (is_multiple) {
    if (named_.scale != 1) return refuse(misfit);
    return number.value *= unit.scale, true;
  }
  if (is_time(meaning_.field)) return given.unit == TimeUnit::unknown ? refuse(misfit) : take_time(number, given.unit);
  if (meaning_.field == Field::throughput) return take_rate(number, given);
  if (meaning_.field != Field::tokens || named_.scale != 1) return refuse(misfit);
  return number.value *= given.scale, true;
}

bool TableColumn::take_time(CellNumber& number, TimeUnit unit) {
  if (named_.unit != TimeUnit::unknown && named_.unit != unit && !number.is_clock)
    return number.why = "has the unit " + number.unit + ", but the column's name another", false;
  if (named_.unit == TimeUnit::unknown && has_bare_)
    return number.why = "has another unit than the cells above it", false;
  if (named_.unit == TimeUnit::unknown && !has_units_) {
    meaning_.unit = unit;
    has_units_ = true;
    if (meaning_.field == Field::none) unit_ = number.unit;
  }
  number.value *= milliseconds_in(unit) / milliseconds_in(meaning_.unit);
  return true;
}

bool TableColumn::take_rate(CellNumber& number, const Meaning& given) {
  const bool is_named = named_.rate != RateLabel::none && named_.rate != RateLabel::unlabelled;
  if (is_named ? given.rate != named_.rate || (named_.scale != 1 && named_.scale != given.scale)
               : has_bare_ || named_.scale != 1 || (has_units_ && given.rate != meaning_.rate))
    return number.why = "has the unit " + number.unit + ", which isn't that of the column", false;
  if (!is_named) {
    meaning_.rate = given.rate;
    has_units_ = true;
  }
  number.value *= given.scale;
  return true;
}

}  // namespace stepladder
