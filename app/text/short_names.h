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
// A - or _ ends a word if a letter follows it: "1e-4" is one.
inline std::string common_beginning(std::span<const std::string> names, std::size_t least) {
  std::string longest;
  for (const std::string& name : names) {
    for (std::size_t end = name.size(); end > longest.size() + 1; --end) {
      const char last = name[end - 1];
      const bool ends_slug =
          (last == '-' || last == '_') && end < name.size() && std::isalpha(static_cast<unsigned char>(name[end])) != 0;
      if (!ends_slug && std::string_view(" :/").find(last) == std::string_view::npos) continue;
      const std::string_view beginning = std::string_view(name).substr(0, end);
      const auto sharing = static_cast<std::size_t>(std::ranges::count_if(
          names, [&](const std::string& other) { return other.size() > end && other.starts_with(beginning); }));
      if (sharing < least) continue;
      longest = beginning;
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
