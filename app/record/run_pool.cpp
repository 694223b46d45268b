#include "app/record/run_pool.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/excerpt.h"

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
  log.file = "run " + std::to_string(run.id) + ", " + run.name;
  log.scheduled_steps = run.planned_steps;
  log.seed = seed_of(run);
  if (!run.hardware.empty()) log.gpus.push_back(run.hardware);
  if (!is_missing(run.started_at)) log.started_at_s = static_cast<std::int64_t>(run.started_at);

  const Summary summary = store.summary(run);
  double time_ms = 0;
  for (std::int64_t first = summary.first_step; first <= summary.last_step && summary.steps > 0;
       first += longest_excerpt) {
    const Series piece = store.series(run.id, first, std::min(summary.last_step, first + longest_excerpt - 1));
    for (std::size_t i = 0; i < piece.size(); ++i) {
      time_ms = is_missing(time_ms) || is_missing(piece.dt_ms[i]) ? missing : time_ms + piece.dt_ms[i];
      log.last_step = piece.step[i];
      if (!is_missing(piece.val_loss[i])) log.evaluations.push_back({piece.step[i], piece.val_loss[i], time_ms});
    }
  }
  if (run.status != RunStatus::finished) {
    log.problem = "is " + std::string(to_string(run.status)) + ", not finished";
  } else if (log.evaluations.empty()) {
    log.problem = "has no validation loss";
  } else if (log.evaluations.back().step < log.last_step) {
    log.problem = "was last evaluated at step " + std::to_string(log.evaluations.back().step) + " of " +
                  std::to_string(log.last_step);
  } else {
    log.final = log.evaluations.back();
  }
  log.unfinished = !log.problem.empty() && log.last_step > 0;
  return log;
}

}  // namespace stepladder
