#include "engine/stage.h"

#include <algorithm>

#include "engine/kernel_parts.h"
#include "engine/nearest.h"
#include "storage/by_enum.h"

namespace stepladder {

std::string_view to_string(StageKind kind) {
  return by_enum<StageKind>("systems-only", "changes-the-maths", "check")[kind];
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

const Stage* find_stage(std::string_view id) {
  const auto& known = all_stages();
  const auto found = std::ranges::find(known, id, &Stage::id);
  return found == known.end() ? nullptr : &*found;
}

const Stage& stage_by_id(std::string_view id) {
  if (const Stage* stage = find_stage(id)) return *stage;
  std::vector<std::string> ids;
  for (const Stage& stage : all_stages()) ids.push_back(stage.id);
  throw RecipeError(FieldName{"stage"}, unknown_name(id, ids));
}

void require_device(const Recipe& recipe, const DeviceReport& report) {
  if (recipe.device == "cuda" && report.gpus.empty())
    throw RecipeError(FieldName{"device"}, "cuda cannot be used: " + report.cuda_note);
  if (recipe.device == "mps" && !report.mps)
    throw RecipeError(FieldName{"device"}, "mps cannot be used: this machine has no Apple GPU");
  for (const Stage& stage : all_stages()) {
    if (!stage.needs_support || !stage.is_on(recipe)) continue;
    const FieldText reason = stage.unavailable(recipe, report, report.resolve(recipe.device));
    if (!reason.empty()) throw RecipeError(FieldName{"stage"}, stage.id + " cannot be used: " + reason);
  }
}

void apply_stages(Recipe& recipe, std::span<const std::string> ids, const DeviceReport& report) {
  require_device(recipe, report);
  for (const std::string& id : ids) {
    const Stage& stage = stage_by_id(id);
    if (const FieldText why = stage.unavailable(recipe, report, report.resolve(recipe.device)); !why.empty())
      throw RecipeError(FieldName{"stage"}, id + " is not available here: " + why);
    stage.apply(recipe);
  }
  require_kernels_to_leave_out(recipe);
}

}  // namespace stepladder
