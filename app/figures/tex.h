// A figure for pgfplots and a table for booktabs in one LaTeX file that compiles unchanged; docs/exports.md describes
// how to put either into a paper.
#pragma once

#include <string>
#include <string_view>

#include "app/figures/figure.h"
#include "app/figures/study.h"

namespace stepladder {

std::string to_tex(const Figure& figure, const Study& study);

// For running text: escapes TeX's special characters. UTF-8 is kept.
std::string tex_escaped(std::string_view text);

}  // namespace stepladder
