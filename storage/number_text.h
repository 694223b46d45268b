// Numbers in texts that others wrote.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace stepladder {

// The number that the whole text is: of "12" or "1e-4", but not of "", "12 ", "+12" or what Number can't hold.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace stepladder
