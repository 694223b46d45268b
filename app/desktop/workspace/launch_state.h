// What the Launch view shows besides its form. Written by the commands of ladders and runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/host/machine_load.h"
#include "app/launch/step_estimate.h"
#include "app/profile/ladder_forecast.h"
#include "app/session/session.h"
#include "engine/device.h"
#include "engine/metrics_sampler.h"
#include "storage/records.h"

namespace stepladder {

// The rungs that the form becomes.
struct LaunchPlan {
  std::string asked;  // text_of the request
  LadderPlan plan;
  std::string problem;              // why there is none
  std::vector<StepEstimate> steps;  // of the plan's rungs
  std::vector<std::string> slower;  // slower_here of the plan's rungs; empty without a plan
  std::size_t measured = 0;         // finished runs in the project when it was made

  const SkippedRung* skipped(int asked) const;  // of the rungs asked for; null if it isn't skipped
};
std::string text_of(const LadderRequest& request);  // equal texts give equal ladders

// A run that is over and has a checkpoint: the step of its newest one.
struct ResumableRun {
  RunId run = 0;
  std::int64_t step = 0;
};

// The predicted steps of a plan's rungs. Read on another thread.
struct PlanForecast {
  std::string asked;  // LaunchPlan::asked
  LadderForecast ladder;
};

struct LaunchState {
  LaunchPlan plan;
  std::shared_ptr<const PlanForecast> forecast;  // of the last plan that had one; null: none yet
  MachineLoad load;                              // read while Launch is open and nothing trains
  std::vector<ResumableRun> resumable;           // newest first; as they were when a view asked for them last
  std::vector<std::string> presets;              // names of the user's own

  // "Other programs use 1.3 of 2 cores (cc1plus 0.9)" if they would disturb a run that starts now; else empty.
  std::string others_text(const DeviceReport& here, const std::string& device) const {
    return load.would_disturb(needed_cores(device, here.cpu_cores, 1)) ? load.text() : "";
  }
};

}  // namespace stepladder
