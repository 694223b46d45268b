// The run of this project that an imported trace is of, whether the trace may explain its speed, and whether two
// profiles are of alike steps: for window, command line and reports.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "storage/analysis/hardware.h"
#include "storage/database/run_store.h"
#include "storage/database/traces/trace_store.h"

namespace stepladder {

// What a profile is of, as far as that is known.
struct ProfileFacts {
  std::string name;
  std::string hardware;        // empty: not known
  std::optional<bool> on_gpu;  // nullopt: not known
  std::int64_t layers = 0;     // 0: not known, as `d_model`
  std::int64_t d_model = 0;
  bool is_whole_trace = false;  // the trace marks no steps, so its times aren't of one step
};
ProfileFacts facts_of(const Run& run);
ProfileFacts facts_of(const StoredTrace& trace, const Run* run);  // null: it isn't attached to one
// Why two profiles' difference is no answer to which is faster, in one sentence: another unit (a step, a whole trace),
// device or model. Empty: nothing known differs.
std::string unlike_text(const ProfileFacts& before, const ProfileFacts& after, const HardwareTable& hardware);

struct TraceOwner {
  std::optional<RunId> run;     // only if it is certain
  std::vector<RunId> possible;  // otherwise; oldest first
  std::string reason;           // a sentence about the one or the others; empty: no run comes into question
};

// Runs of surely other hardware or models don't come into question, nor do more than three logs of the trace's folder.
// Certain is one run alone that trained during the trace, and either is of the traced process, or is of the same host
// (which the trace's file name must say) in the folder that holds the trace's file. Reads all runs of the project.
TraceOwner owner_of(RunStore& store, const StoredTrace& trace);

// Attaches a trace without a run to the run that it is certainly of. Returns what it found.
TraceOwner attach_to_owner(RunStore& store, StoredTrace& trace);

// Sentences about why a profile may not explain the speed of the run that it was taken of; empty if it may, or if one
// of the two times is unknown.
std::string doubt_about(double profiled_step_ms, double run_step_ms);
std::string doubt_about(RunStore& store, const StoredTrace& trace);  // also one of a list; reads its run's summary

// Sentences about how its steps were bounded and what isn't known of its kernels, after the trace's own notes.
std::vector<std::string> notes_of(const TraceProfile& profile);

}  // namespace stepladder
