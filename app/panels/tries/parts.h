// What each part of a kept change does, after `stepladder try parts`: a tornado chart.
#pragma once

#include "app/runs/run_json.h"

namespace stepladder {

// `parts`: as `try show --json` has it, from a file that may be anybody's.
void draw_parts(const Json& parts, bool lower_is_better);

}  // namespace stepladder
