// A stage is one optimisation: a named change to a recipe. One file each in engine/stages/, one line each in
// stages.def.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device.h"
#include "engine/recipe.h"
#include "storage/analysis/known_stage.h"

namespace stepladder {

enum class StageKind {
  systems_only,       // the loss must stay
  changes_the_maths,  // judged by loss at equal tokens and equal time
  check,              // shows that something works; isn't part of a speed-up
};
std::string_view to_string(StageKind kind);  // "systems-only", "changes-the-maths", "check"

struct Stage {
  std::string id;  // as on the command line
  std::string title;
  std::string why;  // one sentence: its effect and the gain to expect
  StageKind kind = StageKind::systems_only;
  std::function<void(Recipe&)> apply;
  // Removes it from a recipe that already has it: a ladder that climbs to a stage must start below it.
  std::function<void(Recipe&)> undo = [](Recipe&) {};
  std::function<bool(const Recipe&)> is_on;  // whether a recipe has it
  // The reason why it cannot be applied to this recipe on this device; empty if it can. `device` is resolved ("cpu",
  // never "auto").
  std::function<FieldText(const Recipe&, const DeviceReport&, const std::string& device)> unavailable = [](auto&&...) {
    return "";
  };
  // Why it is known to be slower than nothing on this device, though it works; empty: it isn't. A ladder has it only if
  // somebody names it.
  std::function<std::string(const DeviceReport&, const std::string& device)> slow = [](auto&&...) { return ""; };
  // Why it seldom makes a step faster on this device; empty: it may. Where nobody asked for it, Launch doesn't tick it.
  std::function<std::string(const std::string& device)> seldom_faster = [](auto&&...) { return ""; };
  // True if a recipe that has it cannot be trained without support for it, since the run's precision would be wrong.
  bool needs_support = false;
  // Its names in other people's logs, and what it does to a traced step. known_stages() fills in `id` and
  // `title`.
  KnownStage known = {};
};

namespace stages {
#define STAGE(name) Stage name();
#include "engine/stages/stages.def"
#undef STAGE
}  // namespace stages

// All stages, in ladder order.
const std::vector<Stage>& all_stages();

// The facts about each stage for storage's functions, in the same order. Lives as long as the program.
const std::vector<KnownStage>& known_stages();

const Stage* find_stage(std::string_view id);  // null if there is none

// Throws RecipeError for an unknown id, with the nearest one that exists.
const Stage& stage_by_id(std::string_view id);

// Throws RecipeError if the recipe names a device that this machine lacks, or has a stage that it cannot have.
void require_device(const Recipe& recipe, const DeviceReport& report);

// Applies them in this order. Throws RecipeError for an unknown one, and for one that the device or the recipe refuses.
void apply_stages(Recipe& recipe, std::span<const std::string> ids, const DeviceReport& report);

}  // namespace stepladder
