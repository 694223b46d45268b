// Whether a file's last line, which has no end, may be cut. Pure.
#pragma once

#include <string_view>

namespace stepladder {

// Whether a line ends as a whole one does: with as many numbers, and the same behind the last of them. A number at the
// very end has as many digits behind the point, or as a whole number no fewer digits.
bool end_alike(std::string_view line, std::string_view whole);

}  // namespace stepladder
