// Letters and words of a line, independent of the locale.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace stepladder {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}
constexpr bool is_alpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
constexpr bool is_word(char c) {
  return is_alpha(c) || is_digit(c) || c == '_';
}
constexpr bool is_space(char c) {
  return c == ' ' || c == '\t';
}
constexpr bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

inline bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  // Most words differ in size or first letter; comparing these is faster than a call of memcmp.
  return std::ranges::any_of(words, [&](std::string_view it) {
    return it.size() == word.size() && (word.empty() || it.front() == word.front()) && it == word;
  });
}

// `word` is in lower case.
inline bool equal_in_lower(std::string_view text, std::string_view word) {
  return text.size() == word.size() &&
         std::equal(text.begin(), text.end(), word.begin(), [](char a, char b) { return lower(a) == b; });
}

// Ignores case; `word` is in lower case.
inline bool contains_word(std::string_view text, std::string_view word) {
  for (const char first : {word.front(), is_alpha(word.front()) ? static_cast<char>(word.front() - 32) : '\0'}) {
    if (first == '\0') break;
    for (std::size_t at = text.find(first); at != std::string_view::npos; at = text.find(first, at + 1))
      if (equal_in_lower(text.substr(at, word.size()), word)) return true;
  }
  return false;
}

inline std::string_view trimmed(std::string_view text, std::string_view characters = " \t") {
  const std::size_t first = text.find_first_not_of(characters);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(characters) - first + 1);
}

}  // namespace stepladder
