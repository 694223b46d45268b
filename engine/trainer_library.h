// The interface between the engine, which needs no torch, and libstepladder_trainer, which contains all of it. One
// compiler builds both sides; Engine opens the library and never closes it.
#pragma once

#include <functional>
#include <vector>

#include "engine/call_times.h"
#include "engine/device.h"
#include "engine/peak_probe.h"
#include "engine/step_tracing.h"
#include "engine/training_job.h"
#include "storage/records.h"

namespace stepladder {

struct TrainerLibrary {
  DeviceReport (*probe)();

  // Trains on the calling thread until the steps are done, a stop is requested (checked between steps) or it fails.
  // Waits between steps while the run is paused. Emits RunStarted once, then a StepRecord for each step and events for
  // checkpoints and text samples, then RunEnded, all from the calling thread. Throws nothing.
  void (*train)(const TrainingJob& job, RunControl& control, const std::function<void(const RunEvent&)>& emit);

  // Blocks for some ten seconds. Throws if it fails, and between samples if a stop is requested.
  PeakProbe (*measure_peak)(const std::function<bool()>& stop_requested);

  // Blocks until all calls are timed. Throws if it fails, and between calls if a stop is requested. Skips bf16 if the
  // device does not support it.
  std::vector<CallTimes> (*time_calls)(const CallTimesRequest& request, const std::function<bool()>& stop_requested);

  // See engine/step_tracing.h.
  void (*trace_steps)(const StepTracing& asked, const std::function<bool()>& stop_requested);
};

// The name of the function that the library exports.
inline constexpr const char* trainer_library_symbol = "stepladder_trainer_library";
// A text that it exports, which is equal in every program that the library works with.
inline constexpr const char* trainer_interface_symbol = "stepladder_trainer_interface";
using TrainerLibraryEntry = const TrainerLibrary* (*)();

}  // namespace stepladder
