// Finds numbers in a line together with key and unit, and skips dates, versions and digits in names. Everything is a
// view of the line. It runs over every number of a log, so it allocates nothing and looks at each character once or
// twice.
#include "storage/importers/logs/lines/pair_scanner.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "storage/importers/logs/units.h"
#include "storage/importers/text.h"

namespace stepladder {
namespace {

// 1.2.3, behind 1.2
bool begins_version(const char* p, const char* end) {
  return p + 1 < end && *p == '.' && is_digit(p[1]);
}

// -05-01 or /05/01, behind a year
bool begins_date(const char* p, const char* end) {
  return p + 3 < end && (*p == '-' || *p == '/') && is_digit(p[1]) && is_digit(p[2]) && (p[3] == '-' || p[3] == '/');
}

// The rest of h:mm:ss or mm:ss, behind this many digits.
bool begins_clock(std::size_t digits, const char* p, const char* end) {
  return p + 2 < end && *p == ':' && is_digit(p[1]) && is_digit(p[2]) && (p + 3 == end || !is_digit(p[3])) &&
         (digits <= 2 || (p + 3 < end && p[3] == ':'));
}

const char* read_clock(const char* p, const char* end, Pair& pair) {
  while (p + 2 < end && *p == ':' && is_digit(p[1])) {
    double part = 0;
    const auto parsed = std::from_chars(p + 1, end, part);
    pair.value = pair.value * 60 + part;
    p = parsed.ptr;
  }
  pair.clock = true;
  if (p + 1 < end && *p == ',' && is_digit(p[1]))  // milliseconds
    while (p < end && (is_digit(*p) || *p == ',')) ++p;
  return p;
}

// "1h02m03s", "1m02.5s"; `p` where there is none.
const char* read_duration(const char* p, const char* end, Pair& pair) {
  constexpr std::string_view units = "hms";
  constexpr double seconds[] = {3600, 60, 1};
  const char* at = p;
  double sum = 0;
  int parts = 0;
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    double part = 0;
    const auto [stop, error] = std::from_chars(at, end, part, std::chars_format::fixed);
    if (error != std::errc() || stop == end || *stop != units[unit]) continue;
    sum += part * seconds[unit];
    at = stop + 1;
    ++parts;
  }
  if (parts < 2 || (at < end && is_word(*at))) return p;
  pair.value = sum;
  pair.clock = true;
  return at;
}

// "1 day, 0:02:30", behind 1.
const char* read_days(const char* p, const char* end, Pair& pair) {
  std::string_view rest(p, static_cast<std::size_t>(end - p));
  const bool is_short = rest.starts_with("d ");  // "1d 02:30:00"
  if (!is_short && !rest.starts_with(" day")) return p;
  rest.remove_prefix(is_short ? 1 : rest.starts_with(" days") ? 5 : 4);
  while (!rest.empty() && (rest.front() == ',' || is_space(rest.front()))) rest.remove_prefix(1);
  Pair clock;
  const auto [stop, error] = std::from_chars(rest.data(), end, clock.value);
  if (error != std::errc() || !begins_clock(static_cast<std::size_t>(stop - rest.data()), stop, end)) return p;
  p = read_clock(stop, end, clock);
  pair.value = pair.value * 86400 + clock.value;
  pair.whole = -1;
  pair.clock = true;
  return p;
}

// "15K(15123)", behind K: the number in parentheses is exact.
const char* read_exact(const char* p, const char* end, Pair& pair) {
  const double scale = unit_of(pair.unit).scale;
  if (p >= end || *p != '(' || !(scale > 1)) return p;
  std::int64_t exact = 0;
  const auto [stop, error] = std::from_chars(p + 1, end, exact);
  if (error != std::errc() || stop == end || *stop != ')') return p;
  const double rounded = static_cast<double>(exact) / scale;
  if (std::fabs(rounded - pair.value) > std::max(1.0, 0.05 * rounded)) return p;
  pair.at += static_cast<std::size_t>(p + 1 - (pair.text.data()));
  pair.text = {p + 1, static_cast<std::size_t>(stop - p - 1)};
  pair.value = static_cast<double>(exact);
  pair.whole = exact;
  pair.exact = true;
  pair.unit = {};
  return stop + 1;
}

// Whether the text ends with the call that a printed number is wrapped in: "np.float32(", "tensor(", "Array(".
std::size_t begins_wrapper(std::string_view gap) {
  if (!gap.ends_with('(') && !gap.ends_with("([")) return std::string_view::npos;
  std::size_t end = gap.rfind('('), start = end;
  while (start > 0 && is_word(gap[start - 1])) --start;
  static constexpr std::string_view types[] = {"float",  "double", "half",        "int",     "uint",    "bfloat",
                                               "tensor", "array",  "devicearray", "decimal", "longlong"};
  const std::string_view word = gap.substr(start, end - start);
  if (std::none_of(std::begin(types), std::end(types), [&](std::string_view type) {
        return equal_in_lower(word.substr(0, type.size()), type) &&
               word.find_first_not_of("0123456789_", type.size()) == std::string_view::npos;
      }))
    return std::string_view::npos;
  while (start > 0 && (is_word(gap[start - 1]) || gap[start - 1] == '.')) --start;
  return start;
}

// Exactly three digits behind a separator.
bool is_group(const char* p, const char* end) {
  return p + 3 < end && is_digit(p[1]) && is_digit(p[2]) && is_digit(p[3]) && (p + 4 == end || !is_digit(p[4]));
}

std::int64_t with_group(std::int64_t number, const char* p) {
  return number * 1000 + (p[1] - '0') * 100 + (p[2] - '0') * 10 + (p[3] - '0');
}

std::string_view between(const char* from, const char* to) {
  return {from, static_cast<std::size_t>(to - from)};
}

// 2,345, 491_520, 4'262 and 4 262 with a narrow blank: the groups behind the first digits.
const char* read_groups(const char* p, const char* end, Pair& pair) {
  const char* const start = p;
  for (;;) {
    const std::string_view rest = between(p, end);
    const std::size_t sign = rest.starts_with("\u202F") ? 3 : rest.starts_with("\u00A0") ? 2 : 1;
    if (rest.size() < sign || (sign == 1 && *p != ',' && *p != '_' && *p != '\'') || !is_group(p + sign - 1, end) ||
        pair.whole >= 9'000'000'000'000)
      break;
    pair.whole = with_group(pair.whole, p + sign - 1);
    p += sign + 3;
  }
  if (p == start) return p;
  pair.value = static_cast<double>(pair.whole);
  if (p + 1 < end && *p == '.' && is_digit(p[1])) {
    double fraction = 0;
    p = std::from_chars(p, end, fraction).ptr;
    pair.value += fraction;
    pair.whole = -1;
  }
  return p;
}

const char* behind_spaces(const char* p, const char* end) {
  while (p < end && is_space(*p)) ++p;
  return p;
}

// 5/100, 500/19,560: what follows 5
const char* read_total(const char* p, const char* end, Pair& pair) {
  const char* at = behind_spaces(p, end);
  if (at + 1 >= end || *at != '/') return p;
  at = behind_spaces(at + 1, end);
  std::int64_t total = 0;
  auto [stop, error] = std::from_chars(at, end, total);
  if (error != std::errc() || !is_digit(*at)) return p;
  while (total > 0 && total < 1'000'000'000'000 && stop < end && *stop == ',' && is_group(stop, end)) {
    total = with_group(total, stop);
    stop += 4;
  }
  if (stop < end && (is_word(*stop) || *stop == '/')) return p;
  pair.total = total;
  return stop;
}

// Letters, "/" and "%", and the two micro signs.
bool is_of_unit(char c) {
  return is_alpha(c) || c == '/' || c == '%' || c == '\xC2' || c == '\xB5' || c == '\xCE' || c == '\xBC';
}

const char* behind_unit(const char* p, const char* end) {
  while (p < end && is_of_unit(*p)) ++p;
  return p;
}

// The words that belong to a unit: "tokens per second per GPU", "tokens / s". `unit_end` is behind the first.
const char* behind_words(const char* unit, const char* unit_end, const char* end) {
  while (unit_end + 2 < end && *unit_end == ' ' && (unit_end[1] == 'p' || unit_end[1] == '/')) {
    const std::string_view rest = between(unit_end, end);
    const std::size_t joint = rest.starts_with(" per ") ? 5 : rest.starts_with(" / ") ? 3 : 0;
    if (joint == 0) break;
    const char* const more = behind_unit(unit_end + joint, end);
    if ((more < end && is_word(*more)) || !unit_of(between(unit, more)).known) break;
    unit_end = more;
  }
  return unit_end;
}

// "loss 2.90 tok/s 93600": whether the word behind a named number is the name of the next one, which has no unit then.
bool names_next(const Unit& word, const char* p, const char* end, const Pair& pair) {
  const bool is_unit =
      unit_of(pair.key.substr(pair.key.rfind(' ') + 1)).known && !(word.scale > 1);  // "it/s 8.1 ms 123"
  if (pair.key.empty() || (word.rate == RateLabel::none && !contains_word(pair.key, "loss") && !is_unit)) return false;
  const char* const next = behind_spaces(p, end);
  if (next == p || next == end || !is_digit(*next)) return false;
  double number = 0;
  const char* const behind = std::from_chars(next, end, number).ptr;
  const char* const unit = behind < end && *behind == ' ' ? behind + 1 : behind;
  const char* const unit_end = behind_unit(unit, end);
  const Unit own = unit_of(between(unit, unit_end));
  const bool is_scale = own.scale > 1 && own.rate == RateLabel::none;  // "tok/s 93.6K"
  const bool names_third = own.known && unit_end < end && (*unit_end == ':' || *unit_end == '=');
  return !own.known || is_scale || names_third || (unit_end + 1 < end && *unit_end == ' ' && is_digit(unit_end[1]));
}

// The unit behind a number. Null if letters glued to the number make both a name: "3d", "61a0f".
const char* read_unit(const char* p, const char* end, Pair& pair) {
  const char* const unit = p < end && *p == ' ' ? p + 1 : p;
  const bool glued = unit == p;
  const char* unit_end = behind_unit(unit, end);
  // "2.46s/20 steps"
  if (unit_end - unit > 1 && unit_end < end && is_digit(*unit_end) && unit_end[-1] == '/' &&
      unit_of(between(unit, unit_end - 1)).time != TimeUnit::unknown)
    --unit_end;
  if (unit_end == unit || (unit_end < end && is_word(*unit_end)))
    return glued && unit < end && is_word(*unit) ? nullptr : p;
  unit_end = behind_words(unit, unit_end, end);
  const Unit known = unit_of(between(unit, unit_end));
  // "437 k tok/s"
  if (known.known && known.scale > 1 && known.rate == RateLabel::none && unit_end < end && *unit_end == ' ') {
    const char* const more = behind_words(unit_end + 1, behind_unit(unit_end + 1, end), end);
    if (unit_of(between(unit_end + 1, more)).rate != RateLabel::none) unit_end = more;
  }
  const bool key_follows = !glued && unit_end < end && (*unit_end == ':' || *unit_end == '=');
  if (known.known && !key_follows && (glued || !names_next(known, unit_end, end, pair))) {
    pair.unit = between(unit, unit_end);
    return unit_end;
  }
  return glued && is_alpha(*unit) && !pair.clock ? nullptr : p;
}

}  // namespace

// {"key": "train_loss", "value": 2.9}, {"metricName": "loss", "metricValue": "2.9"}: the name of the value.
bool PairScanner::next(Pair& pair) {
  if (!next_number(pair)) return false;
  if ((pair.key != "value" && pair.key != "metricValue") || !pair.separated) return true;
  const std::string_view name_of_value = pair.key == "value" ? "\"key\": \"" : "\"metricName\": \"";
  constexpr std::size_t reach = 200;
  const std::size_t window = pair.at < reach ? 0 : pair.at - reach;
  const std::size_t name = line_.substr(window, pair.at - window).rfind(name_of_value);
  if (name == std::string_view::npos) return true;
  const std::size_t begin = window + name + name_of_value.size();
  pair.key = line_.substr(begin, std::min(line_.find('"', begin), pair.at) - begin);
  return true;
}

bool PairScanner::next_number(Pair& pair) {
  const std::size_t size = line_.size();
  while (at_ < size) {
    const char c = line_[at_];
    if (is_alpha(c) || c == '_') {
      std::size_t end = at_;
      while (end < size && is_word(line_[end])) ++end;
      const std::string_view word = line_.substr(at_, end - at_);
      // nan and inf are numbers where a number may be, also with a unit behind them: "step_avg:nanms".
      if (word.size() <= 8 && (equal_in_lower(word.substr(0, 3), "nan") || equal_in_lower(word.substr(0, 3), "inf"))) {
        const std::string_view rest =
            equal_in_lower(word, "infinity") ? std::string_view() : word.substr(std::min<std::size_t>(3, word.size()));
        if (rest.empty() || unit_of(rest).known) {
          const bool negative = at_ > 0 && line_[at_ - 1] == '-';
          pair = {};
          take_key(line_.substr(gap_, at_ - gap_ - (negative ? 1 : 0)), pair);
          if (!pair.key.empty()) {
            pair.value = lower(word[0]) == 'n' ? std::numeric_limits<double>::quiet_NaN()
                                               : std::numeric_limits<double>::infinity() * (negative ? -1 : 1);
            pair.text = word;
            pair.unit = rest;
            pair.at = at_;
            pair.end = at_ = gap_ = end;
            return true;
          }
        }
      }
      // "step100", "step_100": some programs glue the number to the word.
      std::size_t letters = 0;
      while (letters < word.size() && is_alpha(word[letters])) ++letters;
      const std::string_view stem = word.substr(0, letters);
      if (letters < word.size() && word[letters] == '_') ++letters;
      if (letters < word.size() && is_digit(word[letters]) &&
          std::all_of(word.begin() + static_cast<std::ptrdiff_t>(letters), word.end(), is_digit) &&
          (equal_in_lower(stem, "step") || equal_in_lower(stem, "iter") || equal_in_lower(stem, "epoch") ||
           equal_in_lower(stem, "rank"))) {
        at_ += letters;
        if (number(at_, pair)) return true;
        continue;
      }
      at_ = end;
    } else if (is_digit(c) || ((c == '-' || c == '+' || c == '.') && at_ + 1 < size &&
                               (is_digit(line_[at_ + 1]) ||
                                (c != '.' && line_[at_ + 1] == '.' && at_ + 2 < size && is_digit(line_[at_ + 2]))) &&
                               (at_ == 0 || !is_word(line_[at_ - 1])))) {
      if (number(at_, pair)) return true;
    } else {
      ++at_;
    }
  }
  return false;
}

// Reads the number at `at`; false if it isn't one (a date, a version). at_ is behind it either way.
bool PairScanner::number(std::size_t at, Pair& pair) {
  const char* const begin = line_.data();
  const char* const end = begin + line_.size();
  const char* const from = begin + at + (line_[at] == '+' ? 1 : 0);
  double value = 0;
  const auto [stop, error] = std::from_chars(from, end, value);
  if (error == std::errc::result_out_of_range) {
    value = std::numeric_limits<double>::quiet_NaN();  // 1e999: not a size that anybody measured
  } else if (error != std::errc()) {
    at_ = at + 1;
    return false;
  }
  const std::string_view digits(from, static_cast<std::size_t>(stop - from));
  const bool whole = std::all_of(from, stop, is_digit);
  if (begins_version(stop, end)) return skip(stop, [](char c) { return is_word(c) || c == '.' || c == '+'; });
  if (whole && digits.size() == 4 && begins_date(stop, end))
    return skip(stop,
                [](char c) { return is_digit(c) || std::string_view("-/:T.Z").find(c) != std::string_view::npos; });

  // 42,62,504: groups of two, in an order of digits that isn't read
  if (whole && stop + 6 < end && *stop == ',' && is_digit(stop[1]) && is_digit(stop[2]) && stop[3] == ',' &&
      is_digit(stop[4]) && is_digit(stop[5]))
    return skip(stop, [](char c) { return is_digit(c) || c == ',' || c == '.'; });
  pair = {};
  pair.at = at;
  pair.value = value;
  take_key(line_.substr(gap_, at - gap_), pair);
  constexpr std::string_view only_group = "={'0_default";  // InternLM: "grad_norm={'0_default': 1.234}"
  if (const std::string_view front = line_.substr(0, gap_); pair.separated && front.ends_with(only_group))
    take_key(front.substr(0, front.size() - only_group.size() + 1), pair);
  const char* p = stop;
  if (whole && begins_clock(digits.size(), stop, end)) {
    p = read_clock(stop, end, pair);
  } else if (const char* const duration = whole ? read_duration(from, end, pair) : from; duration != from) {
    p = duration;
  } else {
    if (whole && value < largest_whole) pair.whole = static_cast<std::int64_t>(value);
    if (whole && digits.size() <= 3) p = read_groups(stop, end, pair);
  }
  pair.text = line_.substr(at, static_cast<std::size_t>(p - begin) - at);
  if (const char* const days = whole ? read_days(p, end, pair) : p; days != p) {
    p = days;
    pair.text = between(begin + at, p);
  }
  if (pair.whole >= 0) p = read_total(p, end, pair);
  const char* behind = read_unit(p, end, pair);
  if (!behind) return skip(p, is_word);
  behind = read_exact(behind, end, pair);
  // The rest of "tensor(4.9, device='cuda:0')" says nothing about the number.
  if (pair.wrapped) {
    constexpr std::size_t reach = 200;
    const std::string_view rest = line_.substr(static_cast<std::size_t>(behind - begin), reach);
    const std::size_t close = rest.find(')');
    const std::size_t last = rest.find('(') < close ? rest.find(')', close + 1) : close;
    if (last != std::string_view::npos) behind += last + 1;
  }
  pair.end = at_ = gap_ = static_cast<std::size_t>(behind - begin);
  return true;
}

// The key is the text between the last delimiter and the number.
void PairScanner::take_key(std::string_view gap, Pair& pair) {
  const auto drop = [&](std::string_view characters) {
    while (!gap.empty() && characters.find(gap.back()) != std::string_view::npos) gap.remove_suffix(1);
  };
  // An operand isn't the value of the name before the operator: "loss = loss / 4".
  const std::size_t last = gap.find_last_not_of(" \t");
  if (last != std::string_view::npos && (gap[last] == '/' || gap[last] == '+' || gap[last] == '*') && last > 0 &&
      is_space(gap[last - 1]))
    return;
  if (const std::size_t wrapper = begins_wrapper(gap); wrapper != std::string_view::npos) {
    gap = gap.substr(0, wrapper);
    pair.wrapped = true;
  }
  if (gap.ends_with("... (")) gap.remove_suffix(5);  // "Step... (100 | Loss: 5.1)"
  drop(" \t\"'[~$*`#");
  if (!gap.empty() && (gap.back() == ':' || gap.back() == '=' || gap.back() == '>')) {
    pair.separated = true;
    drop(":=> \t-");
  }
  drop(" \t\"'*`");
  if (!gap.empty() && (gap.back() == ')' || gap.back() == ']' || gap.back() == '}')) {
    const char opening = gap.back() == ')' ? '(' : gap.back() == ']' ? '[' : '{';
    const std::size_t open = gap.rfind(opening);
    const std::string_view inside = open == std::string_view::npos ? gap : gap.substr(open + 1, gap.size() - open - 2);
    if (open != std::string_view::npos && (opening == '(' || unit_of(inside).known)) {
      pair.hint = inside;
      gap = gap.substr(0, open);
    }
    drop(" \t\"'*`");
  }
  std::size_t start = gap.size();
  while (start > 0) {
    const char c = gap[start - 1];
    if (!is_ascii(c) || std::strchr("|,;[]{}()\"'\t<>=:`*!?", c) || (c == ' ' && start > 1 && gap[start - 2] == ' ') ||
        (c == ' ' && start > 1 && gap[start - 2] == '-'))
      break;
    --start;
  }
  pair.key = trimmed(gap.substr(start));
  for (const std::string_view verb : {" is", " was"})  // "loss is 3.2"
    if (pair.key.ends_with(verb)) pair.key = trimmed(pair.key.substr(0, pair.key.size() - verb.size()));
}

}  // namespace stepladder
