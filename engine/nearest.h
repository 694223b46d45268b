// "Did you mean ...?": the known name that is nearest to a mistyped one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stepladder {

// The number of insertions, deletions, replacements and swaps of neighbours that turn one into the other (optimal
// string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

// The first name that begins with the word, else the one with the fewest changes, in any case. Empty if none is near:
// more than a third of the word, or more than two letters, would have to change.
std::string nearest_name(std::string_view word, std::span<const std::string> known);

// `"gtp2" is unknown; did you mean gpt2?`, or a list of all known names if none is near.
std::string unknown_name(std::string_view word, std::span<const std::string> known);

}  // namespace stepladder
