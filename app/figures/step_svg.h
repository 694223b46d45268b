// Two steps as icicles on one scale of time, as SVG: kinds have the view Profile's colours, and narrow slices are drawn
// together, paler the less of their room they cover.
#pragma once

#include <string>

#include "app/figures/step_pair.h"
#include "app/figures/svg.h"

namespace stepladder {

std::string step_pair_svg(const StepPair& pair, Theme theme, const std::string& id);

}  // namespace stepladder
