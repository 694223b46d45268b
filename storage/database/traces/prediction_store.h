// Kept predictions of stages (docs/profiling.md), and the runs that measured them since. A part of TraceStore, which
// has its threads, locks and errors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/database/traces/trace_store.h"

namespace stepladder {

struct KeptPrediction {
  std::int64_t id = 0;
  double made_at = missing;  // unix seconds
  std::optional<TraceId> trace;
  std::optional<RunId> run;
  std::string stage;  // "bf16", "bf16+compile"
  std::string device, hardware;
  std::string base_recipe, recipe;  // JSON, of before and after
  bool at_most = false;
  double step_ms = 0, predicted_ms = 0, low_ms = 0, high_ms = 0;
};

// A prediction and two runs with its recipes on its hardware: of one ladder, or of none.
struct MeasuredPrediction {
  KeptPrediction prediction;
  RunId before = 0, after = 0;
};

class PredictionStore {
 public:
  explicit PredictionStore(Database& database) : database_(database) {}

  // Replaces one of the same trace and stage. Ignores the id. The values of the recipes that don't change a step, such
  // as the number of steps and the seed, are left out.
  void keep(const KeptPrediction& prediction);
  std::vector<KeptPrediction> list();  // oldest first

  // The newest trace of such a step: of a run with this recipe, or of the recipe itself.
  std::optional<TraceId> trace_of(const std::string& recipe);
  bool is_measured(const std::string& recipe);  // by a finished run

  // By prediction; of several pairs of runs the one with the newest run after. Finished runs only.
  std::vector<MeasuredPrediction> measured();

 private:
  Database& database_;
};

}  // namespace stepladder
