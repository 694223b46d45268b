// Judges whether a profile may explain the speed of the run that it was taken of: for window, command line and reports.
#pragma once

#include <string>

#include "storage/database/run_store.h"
#include "storage/database/traces/trace_store.h"

namespace stepladder {

// Sentences about why it may not; empty if it may, or if one of the two times is unknown.
std::string doubt_about(double profiled_step_ms, double run_step_ms);
std::string doubt_about(RunStore& store, const StoredTrace& trace);  // also one of a list; reads its run's summary

}  // namespace stepladder
