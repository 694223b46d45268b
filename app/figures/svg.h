// A figure as SVG text: real text elements, so that it can be searched, edited and read aloud. No script, no style
// sheet, no external reference: any program that opens SVG 1.1 opens it.
#pragma once

#include <string>

#include "app/figures/figure.h"

namespace stepladder {

// `page` takes its colours from the custom properties of the HTML page around it (app/figures/html.cpp).
enum class Theme { light, dark, page };

struct SvgOptions {
  int width = 0;  // CSS pixels; 0: what suits the figure
  int height = 0;
  Theme theme = Theme::light;
  std::string id = "f";  // prefix of the ids inside, unique for each figure of a page
  bool with_title = true;
  bool with_caption = true;
};

// A figure grows if its texts and rows need more room.
std::string to_svg(const Figure& figure, const SvgOptions& options = {});

}  // namespace stepladder
