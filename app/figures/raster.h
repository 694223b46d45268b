// Converts SVG to pixels and pages by librsvg and cairo, if the build has them.
#pragma once

#include <string>
#include <string_view>

namespace stepladder {

bool can_rasterise();

// Two pixels for each of the picture's. Throws DataError.
std::string png_of_svg(std::string_view svg);
// 0.75 points for each pixel, text as text. Throws DataError.
std::string pdf_of_svg(std::string_view svg, const std::string& title);

}  // namespace stepladder
