#include "app/preset_ladder.h"

#include <algorithm>
#include <array>

#include "engine/device.h"

namespace stepladder {
namespace {

constexpr int longest_on_cpu = 64;
constexpr std::int64_t most_steps_on_cpu = 20;

// Sizes that changed with a rung belong to the preset; stages carry the rest.
PlannedStage planned(const Run& run, const Recipe& before, const Recipe& recipe) {
  PlannedStage stage{.stage = run.stage};
  constexpr std::array sizes{"batch", "seq", "grad_accum"};
  const auto old_values = describe(before);
  const auto new_values = describe(recipe);
  for (std::size_t i = 0; i < new_values.size(); ++i) {
    const bool is_size = std::find(sizes.begin(), sizes.end(), new_values[i].first) != sizes.end();
    if (is_size && new_values[i].second != old_values[i].second) stage.values.push_back(new_values[i]);
  }
  return stage;
}

void suit_cpu(LadderRequest& request) {
  request.base.seq = std::min(request.base.seq, longest_on_cpu);
  request.base.steps = std::min(request.base.steps, most_steps_on_cpu);
  for (PlannedStage& stage : request.stages)
    std::erase_if(stage.values, [](const auto& value) { return value.first == "seq"; });
}

}  // namespace

LadderRequest preset_ladder(const LadderPreset& plan, const DeviceReport& report, const ChangeRecipe& changed) {
  LadderRequest request{.name = "plan " + plan.name, .notes = plan.note, .base = plan.base, .stages = plan.stages};
  const std::string device = changed ? changed(plan.base).device : plan.base.device;
  if (report.resolve(device) == "cpu") suit_cpu(request);
  if (changed) request.base = changed(request.base);
  const bool gpu = report.resolve(request.base.device) == "cuda" && !report.gpus.empty();
  const std::int64_t free_bytes = gpu ? report.gpus.front().memory_bytes : available_memory_bytes();
  fit_to_memory(request.base, request.stages, report, free_bytes * 8 / 10);
  return request;
}

LadderRequest measure_here(const Ladder& ladder, const std::vector<Run>& runs, const DeviceReport& report) {
  LadderRequest request;
  if (ladder.source == "launched" && !runs.empty()) {
    request.base = recipe_from_json(runs.front().recipe);
    Recipe before = request.base;
    for (const Run& run : runs) {
      if (run.repeat > 0 || run.rung == 0) continue;
      const Recipe recipe = recipe_from_json(run.recipe);
      request.stages.push_back(planned(run, before, recipe));
      before = recipe;
    }
    request.stages.insert(request.stages.begin(), {.stage = "baseline"});
  } else {
    const std::vector<LadderPreset>& plans = ladder_presets();
    const auto plan = std::find_if(plans.begin(), plans.end(), [&](const LadderPreset& known) {
      return ladder.source_path.find(known.log) != std::string::npos || ladder.name == known.log;
    });
    if (plan == plans.end())
      throw RecipeError(ladder.name, "its log doesn't contain enough to train it again; choose the rungs yourself");
    request = preset_ladder(*plan, report);
  }
  request.name = ladder.name + " here";
  request.notes = "The rungs of " + ladder.name + ", measured on this machine";
  return request;
}

}  // namespace stepladder
