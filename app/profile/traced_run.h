// Judges whether a profile may explain the speed of the run that it was taken of: for window, command line and reports.
#pragma once

#include <string>
#include <vector>

#include "storage/database/run_store.h"
#include "storage/database/traces/trace_store.h"

namespace stepladder {

// Sentences about why it may not; empty if it may, or if one of the two times is unknown.
std::string doubt_about(double profiled_step_ms, double run_step_ms);
std::string doubt_about(RunStore& store, const StoredTrace& trace);  // also one of a list; reads its run's summary

// Sentences about how its steps were bounded and what isn't known of its kernels, after the trace's own notes.
std::vector<std::string> notes_of(const TraceProfile& profile);

}  // namespace stepladder
