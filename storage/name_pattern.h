// Patterns of metrics' names.
#pragma once

#include <string_view>

namespace stepladder {

// Whether a pattern means the whole name; * is any text, also none: "val/*" matches "val/acc".
bool matches_pattern(std::string_view pattern, std::string_view name);

}  // namespace stepladder
