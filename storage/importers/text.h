// Letters and words of a line, independent of the locale.
#pragma once

#include <algorithm>
#include <charconv>
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

// Reads a text from left to right. `take` passes over what it returns true for, and else over nothing.
class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : rest_(text) {}

  std::string_view rest() const { return rest_; }
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool take(const char* word) { return take(std::string_view(word)); }
  template <class Number>
  bool take(Number& value) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }
  void skip_spaces() {
    while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
  }

 private:
  std::string_view rest_;
};

}  // namespace stepladder
