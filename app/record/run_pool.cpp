#include "app/record/run_pool.h"

#include <nlohmann/json.hpp>

#include "storage/wording.h"

namespace stepladder {
namespace {

std::string seed_of(const Run& run) {
  const auto recipe = nlohmann::json::parse(run.recipe, nullptr, false);
  if (!recipe.is_object() || !recipe.contains("seed") || !recipe["seed"].is_number_integer()) return {};
  return std::to_string(recipe["seed"].get<std::int64_t>());
}

}  // namespace

SpeedrunLog speedrun_log_of(RunStore& store, const Run& run) {
  SpeedrunLog log;
  log.file = fmt::format("run {}, {}", run.id, run.name);
  log.scheduled_steps = run.planned_steps;
  log.seed = seed_of(run);
  if (!run.hardware.empty()) log.gpus.push_back(run.hardware);
  if (!is_missing(run.started_at)) log.started_at_s = whole_number(run.started_at);

  double time_ms = 0;
  store.for_steps(run.id, [&](std::span<const StepRecord> steps) {
    for (const StepRecord& step : steps) {
      time_ms = is_missing(time_ms) || is_missing(step.dt_ms) ? missing : time_ms + step.dt_ms;
      log.last_step = step.step;
      if (!is_missing(step.val_loss)) log.evaluations.push_back({step.step, step.val_loss, time_ms});
    }
  });
  if (run.status != RunStatus::finished) {
    log.problem = "is " + std::string(to_string(run.status)) + ", not finished";
  } else if (log.evaluations.empty()) {
    log.problem = "has no validation loss";
  } else if (log.evaluations.back().step < log.last_step) {
    log.problem = fmt::format("was last evaluated at step {} of {}", log.evaluations.back().step, log.last_step);
  } else {
    log.final = log.evaluations.back();
  }
  log.unfinished = !log.problem.empty() && log.last_step > 0;
  return log;
}

}  // namespace stepladder
