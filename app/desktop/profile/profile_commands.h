// Commands of the view Profile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/desktop/command.h"
#include "app/desktop/profile/profile_question.h"

namespace stepladder {

struct ShowProfile {  // reads it on another thread
  ProfileQuestion question;
};
struct ExplainSpeedup {  // in the view Profile: the difference of two rungs, by the first repeats that have a profile
  std::vector<RunId> before, after;
};
struct ImportTraces {  // of profilers, on another thread
  std::vector<std::string> files;
};
struct StopTraceImport {};  // and of those that wait; traces that were kept stay
struct RemoveTrace {        // with an undo
  std::int64_t trace = 0;
};
struct RemovePasses {  // with an undo
  std::int64_t passes = 0;
};

// Shows how far the import of a trace is, or its result, once. Call between frames; never blocks.
void take_trace(DesktopState& desktop);

}  // namespace stepladder
