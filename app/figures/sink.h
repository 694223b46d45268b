// Takes the text of an export piece by piece, so that a long one is never in memory as a whole.
#pragma once

#include <functional>
#include <string_view>

namespace stepladder {

// Throws DataError if the text cannot be written.
using Sink = std::function<void(std::string_view)>;

}  // namespace stepladder
