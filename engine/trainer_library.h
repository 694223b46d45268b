// The door between the engine, which holds no torch, and libstepladder_trainer, which holds all of it. Both sides are
// built together by one compiler; the library is opened by Engine and never closed.
#pragma once

#include <functional>
#include <vector>

#include "engine/call_times.h"
#include "engine/device.h"
#include "engine/peak_probe.h"
#include "engine/training_job.h"
#include "storage/records.h"

namespace stepladder {

struct TrainerLibrary {
  DeviceReport (*probe)();

  // Trains on the calling thread until the steps are done, a stop is requested (looked at between steps) or it cannot
  // go on; waits between steps while the run is paused. Emits RunStarted once, then one StepRecord a step and what is
  // saved and written on the way, then RunEnded, all from the calling thread; throws nothing.
  void (*train)(const TrainingJob& job, RunControl& control, const std::function<void(const RunEvent&)>& emit);

  // Blocks for some ten seconds; throws where it cannot go on, and between samples where a stop is requested.
  PeakProbe (*measure_peak)(const std::function<bool()>& stop_requested);

  // Blocks until all calls are timed; throws where it cannot go on, and between calls where a stop is requested. bf16
  // is left out where the device does not do it.
  std::vector<CallTimes> (*time_calls)(const CallTimesRequest& request, const std::function<bool()>& stop_requested);
};

// Exported by the library under this name.
inline constexpr const char* trainer_library_symbol = "stepladder_trainer_library";
using TrainerLibraryEntry = const TrainerLibrary* (*)();

}  // namespace stepladder
