// The order in which people list names: digits count as the number that they write.
#pragma once

#include <string_view>

namespace stepladder {

// "node2" is before "node10". A total order: texts that differ in zeros before a number only ("a1", "a01") are ordered
// by their bytes.
bool naturally_before(std::string_view a, std::string_view b);

}  // namespace stepladder
