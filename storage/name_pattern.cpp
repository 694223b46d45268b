#include "storage/name_pattern.h"

#include <algorithm>
#include <cstddef>

#include "storage/number_text.h"

namespace stepladder {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Removes the digits that `text` begins with, and returns them without zeros in front.
std::string_view take_number(std::string_view& text) {
  const auto end = std::ranges::find_if_not(text, is_digit);
  std::string_view digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

}  // namespace

// Goes back to the last star only, so it takes at most as many steps as name times pattern.
bool matches_pattern(std::string_view pattern, std::string_view name) {
  std::size_t n = 0, p = 0;
  std::size_t star = std::string_view::npos, behind_star = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      behind_star = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++behind_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::string_view prefix_of(std::string_view name) {
  const std::size_t slash = name.find('/');
  return slash == std::string_view::npos ? std::string_view() : name.substr(0, slash);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

bool naturally_before(std::string_view a, std::string_view b) {
  std::string_view left = a, right = b;
  while (!left.empty() && !right.empty()) {
    if (is_digit(left.front()) && is_digit(right.front())) {
      const std::string_view x = take_number(left), y = take_number(right);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    if (left.front() != right.front())
      return static_cast<unsigned char>(left.front()) < static_cast<unsigned char>(right.front());
    left.remove_prefix(1);
    right.remove_prefix(1);
  }
  if (left.empty() != right.empty()) return left.empty();
  return a < b;
}

bool value_before(std::string_view a, std::string_view b) {
  const auto x = parse_number<double>(a), y = parse_number<double>(b);
  if (x && y && *x != *y) return *x < *y;
  return x.has_value() != y.has_value() ? x.has_value() : naturally_before(a, b);
}

}  // namespace stepladder
