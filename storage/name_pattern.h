// Names, and patterns of them.
#pragma once

#include <string>
#include <string_view>

namespace stepladder {

// Whether a pattern matches the whole name; * is any text, also none: "val/*" matches "val/acc".
bool matches_pattern(std::string_view pattern, std::string_view name);

// The part of a name up to its first slash, "" without one: metrics of one prefix are listed together.
std::string_view prefix_of(std::string_view name);

std::string lower_case(std::string_view text);  // ASCII letters only

}  // namespace stepladder
