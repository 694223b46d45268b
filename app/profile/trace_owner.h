// Finds the run of this project that an imported trace is of: for window and command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "storage/database/run_store.h"
#include "storage/database/traces/trace_store.h"

namespace stepladder {

struct TraceOwner {
  std::optional<RunId> run;     // only if it is certain
  std::vector<RunId> possible;  // otherwise; oldest first
  std::string reason;           // a sentence about the one or the others; empty: no run comes into question
};

// Certain is one run alone that trained during the trace, and either is of the traced process, or is of the same host
// (which the trace's file name must say) in the folder that holds the trace's file. Reads all runs of the project.
TraceOwner owner_of(RunStore& store, const StoredTrace& trace);

// Attaches a trace without a run to the run that it is certainly of. Returns what it found.
TraceOwner attach_to_owner(RunStore& store, StoredTrace& trace);

}  // namespace stepladder
