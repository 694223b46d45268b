#include "app/launch/preset_ladder.h"

#include <algorithm>

#include "engine/device.h"
#include "engine/stage.h"

namespace stepladder {
namespace {

constexpr int longest_on_cpu = 64;
constexpr std::int64_t most_steps_on_cpu = 20;

// The rung that turns one recipe into the other: the stages or the name that the run recorded, and every value that
// they don't explain.
PlannedRung planned(const Run& run, Recipe before, const Recipe& recipe) {
  PlannedRung rung;
  try {
    rung.stages = parse_rung(run.stage).stages;
  } catch (const RecipeError&) {
    rung.name = run.stage;
  }
  for (const std::string& id : rung.stages) stage_by_id(id).apply(before);
  const auto old_values = describe(before);
  const auto new_values = describe(recipe);
  for (std::size_t i = 0; i < new_values.size(); ++i) {
    const auto& [name, value] = new_values[i];
    if (value == old_values[i].second || name == "model") continue;
    rung.values.emplace_back(name, value);
  }
  if (rung.stages.empty() && rung.values.empty()) rung.stages = {all_stages().front().id};
  return rung;
}

void suit_cpu(LadderRequest& request) {
  request.base.seq = std::min(request.base.seq, longest_on_cpu);
  request.base.steps = std::min(request.base.steps, most_steps_on_cpu);
  for (PlannedRung& rung : request.rungs)
    std::erase_if(rung.values, [](const auto& value) { return value.first == "seq"; });
}

}  // namespace

LadderRequest preset_ladder(const LadderPreset& plan, const DeviceReport& report, const ChangeRecipe& changed) {
  LadderRequest request{.name = "plan " + plan.name, .notes = plan.note, .base = plan.base, .rungs = plan.rungs};
  const std::string device = changed ? changed(plan.base).device : plan.base.device;
  if (report.resolve(device) == "cpu") suit_cpu(request);
  if (changed) request.base = changed(request.base);
  const bool gpu = report.resolve(request.base.device) == "cuda" && !report.gpus.empty();
  const std::int64_t free_bytes = gpu ? report.gpus.front().memory_bytes : available_memory_bytes();
  fit_to_memory(request.base, request.rungs, report, free_bytes * 8 / 10);
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
      request.rungs.push_back(planned(run, before, recipe));
      const bool is_check = std::ranges::any_of(
          request.rungs.back().stages, [](const std::string& id) { return stage_by_id(id).kind == StageKind::check; });
      if (!is_check) before = recipe;
    }
    request.rungs.insert(request.rungs.begin(), {.stages = {all_stages().front().id}});
  } else {
    const std::vector<LadderPreset>& plans = ladder_presets();
    const auto plan = std::ranges::find_if(plans, [&](const LadderPreset& known) {
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
