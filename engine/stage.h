// A stage is one optimisation: a named change to a recipe. One file each in engine/stages/, one line each in
// stages.def.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/device.h"
#include "engine/recipe.h"
#include "storage/records.h"

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
  // Takes it out of a recipe that has it already: a ladder that climbs to a stage must start below it.
  std::function<void(Recipe&)> undo = [](Recipe&) {};
  // Why it cannot be done to this recipe on this device, empty where it can. `device` is resolved ("cpu", never
  // "auto").
  std::function<std::string(const Recipe&, const DeviceReport&, const std::string& device)> unavailable =
      [](auto&&...) { return ""; };
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

// One step of a plan: a stage, and values that change with it ("batch" to "24": memory that a stage freed).
struct PlannedStage {
  std::string stage;
  std::vector<std::pair<std::string, std::string>> values;
  double seed_tokens_per_s = missing;  // what somebody else measured at this rung
};

// "bf16" or "bf16:batch=24:seq=512". Throws RecipeError for an unknown stage or one without a value.
PlannedStage parse_planned_stage(const std::string& text);

// One rung: the recipe with this stage and all before it applied.
struct Rung {
  std::string stage;
  std::string title;
  Recipe recipe;
  std::string changed;  // difference to the rung before (a check: to the baseline)
  double seed_tokens_per_s = missing;
  // The rung whose loss this one's is held against: the last below it that changed the maths, else the baseline; the
  // baseline too for what stands on it alone.
  int loss_against = 0;
};

struct SkippedStage {
  std::string stage;
  std::string reason;
};

struct LadderPlan {
  std::vector<Rung> rungs;
  std::vector<SkippedStage> skipped;  // asked for, but this device or recipe cannot do them
};

enum class Climb { together, alone };  // each stage on top of those before it, or each on the baseline alone

// The baseline and then one rung for each further stage, in the order asked for; stages that the device cannot do are
// left out and listed. `baseline` goes first whether named or not; it is `base` without the stages that follow. Named
// again, it is a rung with no new stage: it shows what other sizes bring, or how far two measurements of the same lie
// apart. A check stands alone: the rungs after it do without. Throws RecipeError for an unknown or doubled id.
LadderPlan plan_ladder(const Recipe& base, std::span<const PlannedStage> stages, const DeviceReport& report,
                       Climb climb = Climb::together);

}  // namespace stepladder
