// The colour of each kind of work and use of memory, the same in the view Profile and in reports.
#pragma once

#include "storage/analysis/step_profile.h"
#include "storage/traces/step_slices.h"

namespace stepladder {

struct KindColour {
  unsigned on_dark = 0, on_light = 0;  // 0xRRGGBB; dark text is readable on both
};
KindColour colour_of(OperatorKind kind);
KindColour colour_of(MemoryUse use);

}  // namespace stepladder
