// Names of one list without the words with which they all begin: where there is little room, what distinguishes them
// is shown. Pure.
#pragma once

#include <algorithm>
#include <cctype>
#include <span>
#include <string>
#include <string_view>

namespace stepladder {

// The longest beginning, up to the end of a word, that at least `least` names have before more text; empty without one.
// A - or _ ends a word if a letter follows it, "1e-4" being one, and if those names don't share the next part as well:
// "Speed-up-1" and "Speed-up-2" are whole.
inline std::string common_beginning(std::span<const std::string> names, std::size_t least) {
  const auto is_shared = [&](std::string_view beginning) {
    return static_cast<std::size_t>(std::ranges::count_if(names, [&](const std::string& other) {
             return other.size() > beginning.size() && other.starts_with(beginning);
           })) >= least;
  };
  const auto is_of_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  std::string longest;
  for (const std::string_view name : names) {
    for (std::size_t end = name.size(); end > longest.size() + 1; --end) {
      if (std::string_view("-_").find(name[end - 1]) != std::string_view::npos) {
        if (end == name.size() || std::isalpha(static_cast<unsigned char>(name[end])) == 0) continue;
        const auto part = std::ranges::find_if_not(name.substr(end), is_of_word) - name.begin();
        if (is_shared(name.substr(0, static_cast<std::size_t>(part) + 1))) continue;
      } else if (std::string_view(" :/").find(name[end - 1]) == std::string_view::npos) {
        continue;
      }
      if (!is_shared(name.substr(0, end))) continue;
      longest = name.substr(0, end);
      break;
    }
  }
  return longest;
}

// The name without the beginning, if it has it and more.
inline std::string without_beginning(const std::string& name, const std::string& beginning) {
  return name.size() > beginning.size() && name.starts_with(beginning) ? name.substr(beginning.size()) : name;
}

}  // namespace stepladder
