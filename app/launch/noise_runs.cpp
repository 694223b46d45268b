// The ladder that measures noise, and the sentence about its result.
#include "app/launch/noise_runs.h"

#include <algorithm>
#include <cmath>

#include "app/launch/step_estimate.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

// Fewer steps have no steady part; more steps add nothing about the noise.
constexpr std::int64_t fewest_steps = 64, most_steps = 5000;
constexpr int fewest_rounds = 3;

}  // namespace

LadderRequest noise_request(double run_seconds, const DeviceReport& report, const HardwareTable& table) {
  Recipe recipe;
  const double step_seconds = estimate_step(recipe, report, table, {}).seconds;
  recipe.steps = step_seconds > 0 ? std::clamp(std::llround(run_seconds / step_seconds),
                                               static_cast<long long>(fewest_steps), static_cast<long long>(most_steps))
                                  : fewest_steps;
  recipe.eval_every = 0;
  const PlannedRung again{.stages = {"baseline"}};
  return {.name = "Noise of this machine",
          .notes = "The baseline against itself, in turns.",
          .base = recipe,
          .rungs = {again, again},
          .repeats = fewest_rounds,
          .interleave = true};
}

MachineNoise noise_of(RunStore& store, const std::vector<RunId>& runs) {
  std::vector<RunAndSummary> read;
  for (const RunId id : runs) {
    const Run run = store.existing_run(id);
    read.push_back({run, store.summary(run)});
  }
  std::ranges::sort(read,
                    [](const RunAndSummary& a, const RunAndSummary& b) { return a.run.started_at < b.run.started_at; });
  return noise_of(read);
}

RunSpread expected_spread(const std::string& device, const std::string& hardware, const HardwareTable& table) {
  return table.spreads.step_time({.device = device, .hardware = hardware}, {});
}

std::string smallest_gain_text(const RunSpread& spread, std::size_t runs) {
  const double gain = smallest_gain(spread, runs);
  if (is_missing(gain)) return "";
  return "With " + (runs == 1 ? std::string("one run") : std::to_string(runs) + " runs") +
         " of each you can see a gain of " + fine_percent_text(gain);
}

}  // namespace stepladder
