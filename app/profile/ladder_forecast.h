// The predicted steps of a ladder's rungs before they are measured, from a trace of its baseline. Reads the database;
// any thread with a store of its own.
#pragma once

#include <optional>
#include <vector>

#include "app/profile/predict.h"

namespace stepladder {

struct LadderForecast {
  std::optional<TraceId> trace;      // of the baseline's recipe; nullopt: there is none, and nothing is predicted
  std::vector<PredictedStep> rungs;  // one each; unknown for the baseline, for rungs that were measured here already,
                                     // and for those that differ by more than stages
};

// `rungs`: their recipes, the baseline's first. `cores`: those that a recipe without a number of threads takes. Throws
// StorageError.
LadderForecast forecast_ladder(RunStore& store, std::vector<Recipe> rungs, int cores);

}  // namespace stepladder
