// Base64 (RFC 4648) with padding, as files travel between the far program and the side that talks to it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepladder {

inline constexpr std::string_view base64_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

inline std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) text += i + k <= bytes.size() ? base64_digits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

// Nullopt if it isn't Base64 with its padding.
inline std::optional<std::string> from_base64(std::string_view text) {
  static constexpr auto values = [] {
    std::array<std::int8_t, 256> table{};
    table.fill(-1);
    for (std::size_t i = 0; i < base64_digits.size(); ++i)
      table[static_cast<unsigned char>(base64_digits[i])] = static_cast<std::int8_t>(i);
    return table;
  }();
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t size = text.size();
  for (int padding = 0; padding < 2 && size > 0 && text[size - 1] == '='; ++padding) --size;
  std::string bytes;
  bytes.reserve(size * 3 / 4);
  std::uint32_t group = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::int8_t value = values[static_cast<unsigned char>(text[i])];
    if (value < 0) return std::nullopt;
    group = group << 6 | static_cast<std::uint32_t>(value);
    // The second, third and fourth digit of a group complete a byte each.
    if (i % 4 != 0) bytes += static_cast<char>(group >> (6 - 2 * (i % 4)) & 0xff);
  }
  return bytes;
}

}  // namespace stepladder
