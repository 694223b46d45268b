// Text for SVG and HTML: escaped, measured without a font, cut and wrapped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepladder {

// For text and attributes of XML and HTML; bytes that aren't UTF-8 and characters that XML forbids become U+FFFD.
std::string xml_escaped(std::string_view text);

// A wider text ends in an ellipsis.
std::string shortened(std::string_view text, double width, double size_px);

// The width of a text in Inter, within a few per cent; for layout without a font.
double text_width(std::string_view text, double size_px);

// Wraps words into lines that fit.
std::vector<std::string> wrapped(const std::string& text, double width, double size_px);

}  // namespace stepladder
