// The interface between the program and libstepladder_raster, which contains everything that needs librsvg.
#pragma once

#include <string>
#include <string_view>

namespace stepladder {

struct RasterAnswer {
  std::string bytes;
  std::string problem;  // a sentence; empty: it worked
};

struct RasterLibrary {
  RasterAnswer (*png_of_svg)(std::string_view svg);
  RasterAnswer (*pdf_of_svg)(std::string_view svg, const std::string& title);
};

// The one function that the library exports.
inline constexpr const char* raster_library_symbol = "stepladder_raster";
using RasterLibraryEntry = const RasterLibrary* (*)();

}  // namespace stepladder
