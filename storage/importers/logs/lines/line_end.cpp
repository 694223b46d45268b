// Compares the ends of two lines by their numbers and what is behind the last one.
#include "storage/importers/logs/lines/line_end.h"

#include <cstddef>

#include "storage/importers/text.h"

namespace stepladder {
namespace {

// The numbers of a line, and what is behind the last one.
struct LineEnd {
  int numbers = 0;
  std::size_t digits = 0, fraction = 0, exponent = 0;  // digits of the last number
  std::string_view rest;
};

LineEnd end_of(std::string_view line) {
  LineEnd end;
  line = trimmed(line);
  std::size_t at = 0;
  const auto count_digits = [&] {
    const std::size_t from = at;
    while (at < line.size() && is_digit(line[at])) ++at;
    return at - from;
  };
  const auto digit_at = [&](std::size_t place) { return place < line.size() && is_digit(line[place]); };
  while (at < line.size()) {
    if (!is_digit(line[at])) {
      ++at;
      continue;
    }
    end = {.numbers = end.numbers + 1, .digits = count_digits()};
    if (at < line.size() && line[at] == '.' && digit_at(at + 1)) end.fraction = (++at, count_digits());
    if (at < line.size() && lower(line[at]) == 'e') {
      const std::size_t sign = at + 1 < line.size() && (line[at + 1] == '-' || line[at + 1] == '+') ? 1 : 0;
      if (digit_at(at + 1 + sign)) end.exponent = (at += 1 + sign, count_digits());
    }
    end.rest = line.substr(at);
  }
  return end;
}

}  // namespace

bool end_alike(std::string_view line, std::string_view whole) {
  const LineEnd ours = end_of(line), known = end_of(whole);
  if (ours.numbers != known.numbers || ours.rest != known.rest) return false;
  return !ours.rest.empty() || (ours.fraction == known.fraction && ours.exponent == known.exponent &&
                                (ours.fraction + ours.exponent > 0 || ours.digits >= known.digits));
}

}  // namespace stepladder
