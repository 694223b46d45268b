#include "engine/stage.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "engine/nearest.h"

namespace stepladder {
namespace {

const Stage& find_stage(std::string_view id, const std::string& option) {
  const auto& known = all_stages();
  const auto found = std::find_if(known.begin(), known.end(), [&](const Stage& stage) { return stage.id == id; });
  if (found != known.end()) return *found;
  std::vector<std::string> ids;
  for (const Stage& stage : known) ids.push_back(stage.id);
  throw RecipeError(option, unknown_name(id, ids));
}

std::string title_of_another_baseline(const PlannedStage& planned) {
  return planned.values.empty() ? "Measured again" : "Other sizes";
}

}  // namespace

std::string_view to_string(StageKind kind) {
  switch (kind) {
    case StageKind::systems_only:
      return "systems-only";
    case StageKind::changes_the_maths:
      return "changes-the-maths";
    case StageKind::check:
      return "check";
  }
  return "";
}

const std::vector<Stage>& all_stages() {
  static const std::vector<Stage> list = {
#define STAGE(name) stages::name(),
#include "engine/stages/stages.def"
#undef STAGE
  };
  return list;
}

const std::vector<KnownStage>& known_stages() {
  static const std::vector<KnownStage> list = [] {
    std::vector<KnownStage> known;
    for (const Stage& stage : all_stages()) {
      known.push_back(stage.known);
      known.back().id = stage.id;
      known.back().title = stage.title;
    }
    return known;
  }();
  return list;
}

const Stage& stage_by_id(std::string_view id) {
  return find_stage(id, "--stage");
}

PlannedStage parse_planned_stage(const std::string& text, const std::string& option) {
  const auto colon = text.find(':');
  PlannedStage planned{.stage = find_stage(text.substr(0, colon), option).id};
  if (colon == std::string::npos) return planned;
  std::istringstream values(text.substr(colon + 1));
  for (std::string value; std::getline(values, value, ':');) {
    const auto equals = value.find('=');
    if (equals == std::string::npos) {
      throw RecipeError(option, "'" + value + "' in '" + text + "' has no value; write it like batch=24");
    }
    planned.values.emplace_back(value.substr(0, equals), value.substr(equals + 1));
    Recipe tried;
    set_value(tried, planned.values.back().first, planned.values.back().second);
  }
  return planned;
}

LadderPlan plan_ladder(const Recipe& base, std::span<const PlannedStage> stages, const DeviceReport& report,
                       Climb climb) {
  // The first stage of the list is the baseline; it starts every ladder.
  const Stage& baseline = all_stages().front();
  std::vector<PlannedStage> asked(stages.begin(), stages.end());
  if (asked.empty() || asked.front().stage != baseline.id) {
    const auto named = std::find_if(asked.begin(), asked.end(),
                                    [&](const PlannedStage& planned) { return planned.stage == baseline.id; });
    const PlannedStage first = named == asked.end() ? PlannedStage{.stage = baseline.id} : *named;
    if (named != asked.end()) asked.erase(named);
    asked.insert(asked.begin(), first);
  }
  std::set<std::string> seen;
  for (const PlannedStage& planned : asked) {
    const Stage& stage = find_stage(planned.stage, "--stages");
    if (&stage != &baseline && !seen.insert(stage.id).second) {
      throw RecipeError("--stages", stage.id + " is named twice");
    }
  }

  Recipe lowest = base;
  for (const PlannedStage& planned : asked) stage_by_id(planned.stage).undo(lowest);

  const std::string device = report.resolve(base.device);
  LadderPlan plan;
  Recipe reached = lowest;
  int loss_against = 0;
  for (const PlannedStage& planned : asked) {
    const Stage& stage = stage_by_id(planned.stage);
    const bool alone = climb == Climb::alone || stage.kind == StageKind::check;
    const Recipe before = alone && !plan.rungs.empty() ? plan.rungs.front().recipe : reached;
    if (const std::string reason = stage.unavailable(before, report, device); !reason.empty()) {
      plan.skipped.push_back({stage.id, reason});
      continue;
    }
    Recipe recipe = before;
    stage.apply(recipe);
    for (const auto& [name, value] : planned.values) set_value(recipe, name, value);
    try {
      validate(recipe);
    } catch (const RecipeError& error) {  // it doesn't fit the rest of the recipe
      if (plan.rungs.empty()) throw;
      plan.skipped.push_back({stage.id, error.what()});
      continue;
    }
    const bool again = &stage == &baseline && !plan.rungs.empty();
    const std::string changed = plan.rungs.empty() ? "" : difference(before, recipe);
    plan.rungs.push_back({stage.id, again ? title_of_another_baseline(planned) : stage.title, recipe, changed,
                          planned.seed_tokens_per_s, alone ? 0 : loss_against});
    if (alone) continue;
    reached = recipe;
    if (stage.kind == StageKind::changes_the_maths) loss_against = static_cast<int>(plan.rungs.size()) - 1;
  }
  return plan;
}

}  // namespace stepladder
