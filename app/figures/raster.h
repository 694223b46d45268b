// Converts SVG to pixels and pages by libstepladder_raster, which needs librsvg and cairo.
#pragma once

#include <string>
#include <string_view>

namespace stepladder {

// The reason why that is impossible; empty if it is possible. Loads the library at its first call. Any thread.
const std::string& why_no_raster();

// Two pixels for each of the picture's. Throws DataError.
std::string png_of_svg(std::string_view svg);
// 0.75 points for each pixel, text as text. Throws DataError.
std::string pdf_of_svg(std::string_view svg, const std::string& title);

}  // namespace stepladder
