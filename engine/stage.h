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

namespace stepladder {

enum class StageKind {
  systems_only,       // the loss must stay
  changes_the_maths,  // judged by loss at equal tokens and equal time
  check,              // shows that something works; not part of a speed-up
};
std::string_view to_string(StageKind kind);  // "systems-only", "changes-the-maths", "check"

struct Stage {
  std::string id;  // as on the command line
  std::string title;
  std::string why;  // one sentence: what it does and what to expect
  StageKind kind = StageKind::systems_only;
  std::function<void(Recipe&)> apply;
  // Why this device cannot do it, empty where it can. `device` is resolved ("cpu", never "auto").
  std::function<std::string(const DeviceReport&, const std::string& device)> unavailable = [](auto&&...) { return ""; };
};

namespace stages {
#define STAGE(name) Stage name();
#include "engine/stages/stages.def"
#undef STAGE
}  // namespace stages

// All stages, in ladder order.
const std::vector<Stage>& all_stages();

// Throws RecipeError for an unknown id, with the nearest one that exists.
const Stage& stage_by_id(std::string_view id);

// One rung: the recipe with this stage and all before it applied.
struct Rung {
  std::string stage;
  std::string title;
  Recipe recipe;
  std::string changed;  // difference to the rung before
};

struct SkippedStage {
  std::string stage;
  std::string reason;
};

struct LadderPlan {
  std::vector<Rung> rungs;
  std::vector<SkippedStage> skipped;  // asked for, but this device cannot do them
};

// The baseline and then one rung for each further stage, in the order asked for; stages that the device cannot do are
// left out and listed. `baseline` goes first whether named or not. Throws RecipeError for an unknown or doubled id.
LadderPlan plan_ladder(const Recipe& base, std::span<const std::string> stage_ids, const DeviceReport& report);

}  // namespace stepladder
