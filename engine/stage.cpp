#include "engine/stage.h"

#include <algorithm>
#include <set>

#include "engine/nearest.h"

namespace stepladder {
namespace {

const Stage& find_stage(std::string_view id, const char* option) {
  const auto& known = all_stages();
  const auto found = std::find_if(known.begin(), known.end(), [&](const Stage& stage) { return stage.id == id; });
  if (found != known.end()) return *found;
  std::vector<std::string> ids;
  for (const Stage& stage : known) ids.push_back(stage.id);
  throw RecipeError(option, unknown_name(id, ids));
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

const Stage& stage_by_id(std::string_view id) {
  return find_stage(id, "--stage");
}

LadderPlan plan_ladder(const Recipe& base, std::span<const std::string> stage_ids, const DeviceReport& report) {
  // The first stage of the list is the baseline; it starts every ladder.
  std::vector<const Stage*> asked = {&all_stages().front()};
  std::set<std::string> seen;
  for (const std::string& id : stage_ids) {
    const Stage& stage = find_stage(id, "--stages");
    if (!seen.insert(stage.id).second) throw RecipeError("--stages", stage.id + " is named twice");
    if (&stage != asked.front()) asked.push_back(&stage);
  }

  const std::string device = report.resolve(base.device);
  LadderPlan plan;
  Recipe recipe = base;
  for (const Stage* stage : asked) {
    if (const std::string reason = stage->unavailable(report, device); !reason.empty()) {
      plan.skipped.push_back({stage->id, reason});
      continue;
    }
    const Recipe before = recipe;
    stage->apply(recipe);
    plan.rungs.push_back({stage->id, stage->title, recipe, plan.rungs.empty() ? "" : difference(before, recipe)});
  }
  return plan;
}

}  // namespace stepladder
