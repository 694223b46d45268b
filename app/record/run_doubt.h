// What forbids to call a gain one: figures that the hardware can't reach or that are doubtful themselves, and a time
// that is less because the loss or the steps gave way. `try` and `record gate` ask it before they answer with 0.
#pragma once

#include <span>
#include <string>

#include "app/record/log_figure.h"
#include "app/runs/loaded_runs.h"

namespace stepladder {

enum class RunDoubt { none, cannot_tell, invalid, guard };

struct DoubtedGain {
  RunDoubt doubt = RunDoubt::none;
  std::string reason;  // of a doubt
  std::string note;    // of none: what isn't known
};

// Of runs that claim a gain over `before`, from their logs; `before` may be empty: then nothing is compared. `by_time`:
// the gain is one of time or throughput. The runs' start and end are their processes', or missing. Pure.
DoubtedGain doubt_of(std::span<const MeasuredRun> before, std::span<const MeasuredRun> after,
                     const HardwareTable& hardware, bool by_time);

// The run of a log that isn't in the project, as a finished one.
LoadedRun loaded_from(const LoggedRun& logged);

}  // namespace stepladder
