// A report of a study as one HTML file: styles and figures inside, no script, no request to anywhere. Light or dark
// like the reader's system; prints well too.
#pragma once

#include <optional>
#include <string>

#include "app/figures/study.h"
#include "app/figures/svg.h"

namespace stepladder {

// `theme`: light or dark for all readers; none: their system's.
std::string report_html(const Study& study, std::optional<Theme> theme = std::nullopt);

}  // namespace stepladder
