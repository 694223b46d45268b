// Commands of the view Profile.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
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
struct ShowTrace {  // in the view Profile, alone
  std::int64_t trace = 0;
};
struct TraceRun {  // of a run launched here: trains some steps of its recipe in another process, and attaches the trace
  RunId run = 0;
};
struct TimePasses {};  // of the usual model, in another process
struct AttachTrace {   // to a run that it was taken of; none: detaches it. With an undo
  std::int64_t trace = 0;
  std::optional<RunId> run;
};
struct OpenExampleTraces {};  // imports the pair that comes with the program (app/profile/example_traces.h)
struct StopTraceImport {};    // and of those that wait; traces that were kept stay
struct RemoveTrace {          // with an undo
  std::int64_t trace = 0;
};
struct RemovePasses {  // with an undo
  std::int64_t passes = 0;
};

// Removes a trace, between frames. Returns what brings it back; empty: there is no such trace. Throws StorageError.
std::function<void()> remove_trace(DesktopState& desktop, TraceId id);

// Reads the list of traces, and what the view Profile shows, again. Call between frames.
void reload_traces(DesktopState& desktop);

// Shows how far the import of a trace is, or its result, once. Call between frames; never blocks.
void take_trace(DesktopState& desktop);

}  // namespace stepladder
