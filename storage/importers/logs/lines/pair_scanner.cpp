#include "storage/importers/logs/lines/pair_scanner.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include "storage/importers/logs/lines/printed_unit.h"
#include "storage/importers/text.h"

namespace stepladder {
namespace {

constexpr double largest_count = 9e15;

}  // namespace

bool PairScanner::next(Pair& pair) {
  const std::size_t size = line_.size();
  while (at_ < size) {
    const char c = line_[at_];
    if (is_alpha(c) || c == '_') {
      std::size_t end = at_;
      while (end < size && is_word(line_[end])) ++end;
      const std::string_view word = line_.substr(at_, end - at_);
      // nan and inf are numbers where a number may stand, also with a unit behind them: "step_avg:nanms".
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
      // "step100": some glue the number to the word.
      std::size_t letters = 0;
      while (letters < word.size() && is_alpha(word[letters])) ++letters;
      const std::string_view stem = word.substr(0, letters);
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

// Reads the number at `at`; false where it is none (a date, a version), with at_ behind it either way.
bool PairScanner::number(std::size_t at, Pair& pair) {
  const char* const begin = line_.data();
  const char* const end = begin + line_.size();
  const char* from = begin + at + (line_[at] == '+' ? 1 : 0);
  double value = 0;
  const auto [stop, error] = std::from_chars(from, end, value);
  const char* p = stop;
  if (error == std::errc::result_out_of_range) {
    value = std::numeric_limits<double>::quiet_NaN();  // 1e999: not a size that anybody measured
  } else if (error != std::errc()) {
    at_ = at + 1;
    return false;
  }
  const bool digits_only = std::all_of(from, p, is_digit);
  const auto skip = [&](auto part) {
    while (p < end && part(*p)) ++p;
    at_ = static_cast<std::size_t>(p - begin);
    gap_ = at_;
    return false;
  };

  if (p + 1 < end && *p == '.' && is_digit(p[1]))
    return skip([](char c) { return is_word(c) || c == '.' || c == '+'; });
  if (digits_only && p - from == 4 && p + 2 < end && (*p == '-' || *p == '/') && is_digit(p[1]) && is_digit(p[2]) &&
      p + 3 < end && (p[3] == '-' || p[3] == '/'))
    return skip(
        [](char c) { return is_digit(c) || c == '-' || c == '/' || c == ':' || c == 'T' || c == '.' || c == 'Z'; });

  pair = {};
  pair.at = at;
  take_key(line_.substr(gap_, at - gap_), pair);

  // h:mm:ss, or mm:ss.
  if (digits_only && p + 2 < end && *p == ':' && is_digit(p[1]) && is_digit(p[2]) &&
      (p + 3 == end || !is_digit(p[3])) && (p - from <= 2 || (p + 3 < end && p[3] == ':'))) {
    double seconds = value;
    while (p + 2 < end && *p == ':' && is_digit(p[1])) {
      double part = 0;
      const auto parsed = std::from_chars(p + 1, end, part);
      seconds = seconds * 60 + part;
      p = parsed.ptr;
    }
    if (p < end && *p == ',' && p + 1 < end && is_digit(p[1])) skip([](char c) { return is_digit(c) || c == ','; });
    pair.value = seconds;
    pair.clock = true;
  } else {
    // 2,345 and 491_520: a thousand by groups of three.
    std::int64_t whole = -1;
    if (digits_only && value < largest_count) whole = static_cast<std::int64_t>(value);
    const char* group = p;
    while (digits_only && whole >= 0 && (group > p || p - from <= 3) && group + 3 < end &&
           (*group == ',' || *group == '_') && is_digit(group[1]) && is_digit(group[2]) && is_digit(group[3]) &&
           (group + 4 == end || !is_digit(group[4])) && whole < 9'000'000'000'000) {
      whole = whole * 1000 + (group[1] - '0') * 100 + (group[2] - '0') * 10 + (group[3] - '0');
      group += 4;
    }
    if (group > p) {
      p = group;
      value = static_cast<double>(whole);
      if (p + 1 < end && *p == '.' && is_digit(p[1])) {
        double fraction = 0;
        p = std::from_chars(p, end, fraction).ptr;
        value += fraction;
        whole = -1;
      }
    }
    pair.value = value;
    pair.whole = whole;
  }
  pair.text = line_.substr(at, static_cast<std::size_t>(p - begin) - at);

  // 5/100
  const char* slash = p;
  while (slash < end && is_space(*slash)) ++slash;
  if (pair.whole >= 0 && slash + 1 < end && *slash == '/') {
    ++slash;
    while (slash < end && is_space(*slash)) ++slash;
    std::int64_t total = 0;
    auto parsed = std::from_chars(slash, end, total);
    while (parsed.ec == std::errc() && total > 0 && total < 1'000'000'000'000 && parsed.ptr + 3 < end &&
           *parsed.ptr == ',' && is_digit(parsed.ptr[1]) && is_digit(parsed.ptr[2]) && is_digit(parsed.ptr[3]) &&
           (parsed.ptr + 4 == end || !is_digit(parsed.ptr[4]))) {  // 500/19,560
      total = total * 1000 + (parsed.ptr[1] - '0') * 100 + (parsed.ptr[2] - '0') * 10 + (parsed.ptr[3] - '0');
      parsed.ptr += 4;
    }
    if (parsed.ec == std::errc() && is_digit(*slash) &&
        (parsed.ptr == end || (!is_word(*parsed.ptr) && *parsed.ptr != '/'))) {
      pair.total = total;
      p = parsed.ptr;
    }
  }

  // Its unit. What is glued to a number and is no unit makes it a name: "3d", "61a0f".
  const char* unit = p;
  if (unit < end && *unit == ' ') ++unit;
  const char* unit_end = unit;
  const auto is_unit = [](char c) {
    return is_alpha(c) || c == '/' || c == '%' || c == '\xC2' || c == '\xB5' || c == '\xCE' || c == '\xBC';
  };
  while (unit_end < end && is_unit(*unit_end)) ++unit_end;
  if (unit_end > unit && (unit_end == end || !is_word(*unit_end))) {
    std::string_view text(unit, static_cast<std::size_t>(unit_end - unit));
    const bool key_follows = unit > p && unit_end < end && (*unit_end == ':' || *unit_end == '=');
    Unit known = unit_of(text);
    // "437 k tok/s"
    if (known.known && known.scale > 1 && known.rate == RateLabel::none && unit_end < end && *unit_end == ' ') {
      const char* more = unit_end + 1;
      while (more < end && is_unit(*more)) ++more;
      if (unit_of({unit_end + 1, static_cast<std::size_t>(more - unit_end - 1)}).rate != RateLabel::none)
        unit_end = more, text = {unit, static_cast<std::size_t>(unit_end - unit)};
    }
    if (known.known && !key_follows) {
      pair.unit = text;
      p = unit_end;
    } else if (unit == p && is_alpha(*unit) && !pair.clock) {
      return skip([](char c) { return is_word(c); });
    }
  } else if (unit == p && unit < end && is_word(*unit)) {
    return skip([](char c) { return is_word(c); });
  }
  pair.end = at_ = gap_ = static_cast<std::size_t>(p - begin);
  return true;
}

// The key is what stands between the last delimiter and the number.
void PairScanner::take_key(std::string_view gap, Pair& pair) {
  const auto drop = [&](std::string_view characters) {
    while (!gap.empty() && characters.find(gap.back()) != std::string_view::npos) gap.remove_suffix(1);
  };
  // An operand is no value of what stands before the operator: "loss = loss / 4".
  const std::size_t last = gap.find_last_not_of(" \t");
  if (last != std::string_view::npos && (gap[last] == '/' || gap[last] == '+' || gap[last] == '*') && last > 0 &&
      is_space(gap[last - 1]))
    return;
  drop(" \t\"'[~$*`#");
  if (!gap.empty() && (gap.back() == ':' || gap.back() == '=' || gap.back() == '>')) {
    pair.separated = true;
    drop(":=> \t-");
  }
  drop(" \t\"'*`");
  if (!gap.empty() && gap.back() == ')') {
    if (const std::size_t open = gap.rfind('('); open != std::string_view::npos) {
      pair.hint = gap.substr(open + 1, gap.size() - open - 2);
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
}

}  // namespace stepladder
