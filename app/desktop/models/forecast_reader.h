// Reads the predicted steps of Launch's rungs on another thread. UI thread.
#pragma once

#include <chrono>
#include <memory>

#include "app/desktop/models/background.h"
#include "app/desktop/workspace/launch_state.h"
#include "storage/database/run_store.h"

namespace stepladder {

class ForecastReader {
 public:
  bool is_pending() const { return background_.is_pending(); }

  // Call in every frame in which Launch is open. Reads again when the plan or the project's file (`version`) has
  // changed. `store` is read through a connection of its own, or directly if it is in memory.
  void update(std::shared_ptr<const PlanForecast>& into, const LaunchPlan& plan, int cores, RunStore& store,
              std::uint64_t version, std::chrono::milliseconds patience);

 private:
  std::string asked_;
  std::uint64_t version_ = 0;
  Background<std::shared_ptr<const PlanForecast>> background_;
};

}  // namespace stepladder
