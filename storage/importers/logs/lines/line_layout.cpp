#include "storage/importers/logs/lines/line_layout.h"

#include <algorithm>
#include <charconv>

#include "storage/importers/logs/lines/pair_scanner.h"
#include "storage/importers/text.h"

namespace stepladder {
namespace {

constexpr std::size_t longest_line = 4096;
constexpr std::uint32_t most_digits = 15;  // so that a double holds the whole number
constexpr std::uint32_t most_exponent_digits = 2;

std::string_view without_end(std::string_view text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// What joins digits to a date, a clock, a version or a thousand.
bool joins(char c) {
  return c == '-' || c == '/' || c == ':' || c == ',' || c == '_' || c == '.' || c == '+';
}

double* number_of(StepLine& line, Field field) {
  return field == Field::epoch ? &line.epoch : value_of(line, field);
}

}  // namespace

bool LineLayout::next_number(std::string_view text, std::size_t from, Number& number) {
  std::size_t at = from;
  while (at < text.size() && !(is_digit(text[at]) && (at == 0 || !is_word(text[at - 1])))) ++at;
  if (at == text.size()) return false;
  const auto digits = [&](std::size_t start) {
    std::size_t end = start;
    while (end < text.size() && is_digit(text[end])) ++end;
    return static_cast<std::uint32_t>(end - start);
  };
  number = {};
  number.at = static_cast<std::uint32_t>(at);
  number.point = digits(at);
  std::size_t end = at + number.point;
  if (end + 1 < text.size() && text[end] == '.' && is_digit(text[end + 1])) {
    number.fraction = digits(end + 1);
    end += 1 + number.fraction;
  }
  if (end + 1 < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    const std::size_t sign = text[end + 1] == '-' || text[end + 1] == '+' ? 1 : 0;
    number.exponent = digits(end + 1 + sign);
    if (number.exponent > 0) end += 1 + sign + number.exponent;
  }
  number.size = static_cast<std::uint32_t>(end - at);
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
    numbers_.push_back(number);
  }
  for (int i = 0; i < trace.count; ++i) {
    const ReadTrace::Found& found = trace.found[i];
    for (Number& it : numbers_) it.fixed |= it.at >= found.at + found.size && it.at < found.end;  // N of "5/N"
    if (found.at > 0 && is_word(text[found.at - 1])) continue;  // "rank0", "step100": letters like any others
    Slot slot{.signed_ = text[found.at] == '-', .field = found.field, .scale = found.scale};
    const std::size_t start = found.at + (slot.signed_ ? 1 : 0), end = found.at + found.size;
    while (slot.number < numbers_.size() && numbers_[slot.number].at != start) ++slot.number;
    if (slot.number == numbers_.size()) return false;
    const Number& first = numbers_[slot.number];
    slot.compound = first.at + first.size != end;
    // The last of several numbers that make one value ends where that does.
    const bool ends =
        std::any_of(numbers_.begin(), numbers_.end(), [&](const Number& it) { return it.at + it.size == end; });
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
  constexpr std::size_t most_numbers = 64;
  if (numbers_.size() > most_numbers || text.size() > longest_line) return false;
  std::uint32_t starts[most_numbers], sizes[most_numbers];

  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const char* p = begin;
  const char* known = text_.data();
  const auto count_digits = [&] {
    const char* const start = p;
    while (p < end && is_digit(*p)) ++p;
    return static_cast<std::uint32_t>(p - start);
  };
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    const Number& number = numbers_[i];
    const char* const number_begin = text_.data() + number.at;
    // Between two numbers stands what stood there; how many spaces are in front of one does not count.
    while (known < number_begin && p < end && *p == *known) ++p, ++known;
    if (known < number_begin) {
      if (known == text_.data() || known[-1] != ' ' ||
          !std::all_of(known, number_begin, [](char c) { return c == ' '; }))
        return false;
    } else if (known > text_.data() && known[-1] == ' ') {
      while (p < end && *p == ' ') ++p;
    }
    const char* const start = p;
    const std::uint32_t point = count_digits();
    if (point == 0 || point > most_digits || (start > begin && is_word(start[-1]))) return false;
    std::uint32_t fraction = 0, exponent = 0;
    if (p + 1 < end && *p == '.' && is_digit(p[1])) {
      ++p;
      fraction = count_digits();
    }
    if (p + 1 < end && (*p == 'e' || *p == 'E')) {
      const char* const letter = p;
      p += p[1] == '-' || p[1] == '+' ? 2 : 1;
      exponent = count_digits();
      if (exponent == 0) p = letter;
    }
    if ((fraction > 0) != (number.fraction > 0) || exponent != number.exponent) return false;
    if (number.strict && (point != number.point || fraction != number.fraction)) return false;
    if (number.fixed && std::string_view(start, static_cast<std::size_t>(p - start)) !=
                            std::string_view(text_).substr(number.at, number.size))
      return false;
    starts[i] = static_cast<std::uint32_t>(start - begin);
    sizes[i] = static_cast<std::uint32_t>(p - start);
    known = number_begin + number.size;
  }
  if (std::string_view(p, static_cast<std::size_t>(end - p)) !=
      std::string_view(known, static_cast<std::size_t>(text_.data() + text_.size() - known)))
    return false;

  line = line_;
  for (const Slot& slot : slots_) {
    const char* const from = begin + starts[slot.number];
    double value = 0;
    std::int64_t whole = -1;
    if (slot.compound) {
      Pair pair;
      if (!PairScanner(text).number_at(starts[slot.number], pair)) return false;
      value = pair.value;
      whole = pair.whole;
    } else if (double* const into = number_of(line, slot.field)) {
      std::from_chars(from - (slot.signed_ ? 1 : 0), from + sizes[slot.number], value);
      *into = value * slot.scale;
      continue;
    } else {
      std::from_chars(from, from + sizes[slot.number], whole);
    }
    if (double* const into = number_of(line, slot.field)) {
      *into = value * slot.scale;
    } else if (whole < 0) {
      return false;
    } else if (slot.field == Field::step) {
      line.step = whole;
    } else if (slot.field == Field::rank) {
      line.rank = whole;
    } else {
      return false;
    }
  }
  return true;
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
  // The one that has not fitted for longest makes room.
  count_ = std::min(count_, most - 1);
  if (!layouts_[order_[count_]].learn(text, read, trace)) return;
  std::rotate(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(count_),
              order_.begin() + static_cast<std::ptrdiff_t>(count_) + 1);
  ++count_;
}

}  // namespace stepladder
