// Shows the time of a step by kind of operator: a bar for each, next to another run's if given. UI thread, inside a
// frame.
#pragma once

#include <imgui.h>

#include <functional>

#include "storage/analysis/step_profile.h"

namespace stepladder {

// A step of `step_ms`, or of another unit, by kind.
struct KindBars {
  KindTimes times;
  double step_ms = 0;
  const char* unit = "ms/step";
};
KindBars bars_of(const FittedProfile& shown);  // shares if it isn't comparable with the step

// Fills the available width; shows shares if the profile isn't comparable with the step. `before` gets thin grey bars,
// and numbers show the change since; null unless both profiles are comparable. The change's colour says better or worse
// only if `is_clear`: the step's own change isn't noise.
void draw_operator_bars(const FittedProfile& shown, const ImVec4& colour, const FittedProfile* before, bool is_clear);

void draw_operator_bars(const KindBars& shown, const std::function<ImVec4(OperatorKind)>& colour_of,
                        const KindBars* before, bool is_clear);

}  // namespace stepladder
