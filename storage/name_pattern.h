// Names: patterns of them, and their order.
#pragma once

#include <string>
#include <string_view>

namespace stepladder {

// Whether a pattern matches the whole name; * is any text, also none: "val/*" matches "val/acc".
bool matches_pattern(std::string_view pattern, std::string_view name);

// The part of a name up to its first slash, "" without one: metrics of one prefix are listed together.
std::string_view prefix_of(std::string_view name);

// The order in which people list names, where digits count as the number that they write: "node2" is before "node10". A
// total order: texts that differ in zeros before a number only ("a1", "a01") are ordered by their bytes.
bool naturally_before(std::string_view a, std::string_view b);

// The order of a setting's values: numbers first and by size ("1e-4" before "0.001"), then words as above.
bool value_before(std::string_view a, std::string_view b);

std::string lower_case(std::string_view text);  // ASCII letters only

}  // namespace stepladder
