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
#include "storage/analysis/known_stage.h"
#include "storage/records.h"

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
  // Why it cannot be applied to this recipe on this device; empty if it can. `device` is resolved ("cpu", never
  // "auto").
  std::function<std::string(const Recipe&, const DeviceReport&, const std::string& device)> unavailable =
      [](auto&&...) { return ""; };
  // Whether a recipe with it cannot be trained if it is unavailable, since the run's precision would be wrong.
  bool needs_support = false;
  // Its names in other people's logs, and the gains that the advisor may expect. known_stages() fills in `id` and
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

// Throws RecipeError for an unknown id, with the nearest one that exists.
const Stage& stage_by_id(std::string_view id);

// One step of a plan: a stage, and values that change with it ("batch" to "24" after a stage that freed memory).
struct PlannedStage {
  std::string stage;
  std::vector<std::pair<std::string, std::string>> values;
  double seed_tokens_per_s = missing;  // somebody else's throughput at this rung
};

// Reads "bf16" or "bf16:batch=24:seq=512". Throws RecipeError for an unknown stage, name or value.
PlannedStage parse_planned_stage(const std::string& text, const std::string& option = "--stages");

// One rung: the recipe with this stage and all before it applied.
struct Rung {
  std::string stage;
  std::string title;
  Recipe recipe;
  std::string changed;  // the difference from the previous rung (a check: from the baseline)
  double seed_tokens_per_s = missing;
  // The rung whose loss is this one's reference: the last earlier one that changes training results, else the baseline.
  // A rung on the baseline alone is compared with the baseline.
  int loss_against = 0;
};

struct SkippedStage {
  std::string stage;
  std::string reason;
};

struct LadderPlan {
  std::vector<Rung> rungs;
  std::vector<SkippedStage> skipped;  // asked for, but unavailable with this device or recipe
};

enum class Climb { together, alone };  // each stage on top of those before it, or each on the baseline alone

// The baseline, then one rung for each further stage in the order asked for. Stages that are unavailable on the device
// are skipped and listed. `baseline` is the first rung whether named or not: `base` without the stages that follow.
// Named again, it is a rung with no new stage, which shows the effect of other sizes or the noise between two equal
// measurements. A check is applied to the baseline alone; later rungs don't have it. Throws RecipeError for an unknown
// or repeated id.
LadderPlan plan_ladder(const Recipe& base, std::span<const PlannedStage> stages, const DeviceReport& report,
                       Climb climb = Climb::together);

}  // namespace stepladder
