#include "app/profile/ladder_forecast.h"

#include "engine/stage.h"
#include "storage/database/traces/prediction_store.h"

namespace stepladder {
namespace {

// The stages that make `after` of `before`; nullopt: it takes more than stages.
std::optional<std::vector<std::string>> stages_between(const Recipe& before, const Recipe& after) {
  Recipe made = before;
  std::vector<std::string> stages;
  for (const Stage& stage : all_stages()) {
    if (stage.kind == StageKind::check || stage.is_on(made) || !stage.is_on(after)) continue;
    stage.apply(made);
    stages.push_back(stage.id);
  }
  if (stages.empty() || !(made == after)) return std::nullopt;
  return stages;
}

}  // namespace

LadderForecast forecast_ladder(RunStore& store, std::vector<Recipe> rungs, int cores) {
  for (Recipe& rung : rungs)
    if (rung.threads == 0) rung.threads = cores;  // as runs record it
  LadderForecast forecast{.rungs = std::vector<PredictedStep>(rungs.size())};
  if (rungs.empty()) return forecast;
  PredictionStore predictions = store.traces().predictions();
  forecast.trace = predictions.trace_of(to_json(rungs.front()));
  std::optional<StoredTrace> trace = forecast.trace ? store.traces().find(*forecast.trace) : std::nullopt;
  if (!trace) return forecast;
  const PredictionSubject subject = load_subject(store, std::move(*trace));
  for (std::size_t i = 1; i < rungs.size(); ++i) {
    const auto stages = stages_between(rungs.front(), rungs[i]);
    if (!stages || predictions.is_measured(to_json(rungs[i]))) continue;
    forecast.rungs[i] = predict(subject, {.stages = *stages}, nullptr).step;
  }
  return forecast;
}

}  // namespace stepladder
