// The rungs of a ladder: the text that names them, on the command line, in files and in the window's rung editor, and
// the recipes that they become. No torch.
//
// A ladder is written as rungs separated by commas. A rung is written as parts separated by colons: stages
// ("bf16+compile"), a custom name (first, and unlike any stage's), and values of the recipe that change with it
// ("batch=24", by the names of the recipe's options or JSON). "bf16:batch=24,mine:compile:lr=3e-4,seed=7" has three
// rungs. A backslash makes the next character part of a name or value: "data=a\,b.txt".
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

// One rung as it was asked for: stages, then values that change with them.
struct PlannedRung {
  std::string name;                                         // the user's own; empty: named after stages and values
  std::vector<std::string> stages;                          // ids
  std::vector<std::pair<std::string, std::string>> values;  // names as in `describe`
  double seed_tokens_per_s = missing;                       // somebody else's throughput at this rung
  bool is_usual = false;  // nobody named it: it is left out where its stage is known to be slow
};

// The rungs of a ladder whose user names none: every stage that leaves the maths alone.
std::vector<PlannedRung> usual_rungs();

// Both throw RecipeError for an unknown stage, name or value; parse_rungs also names the rung: "rung 2 'mine': lr must
// be a number, not 'abc'". `about` names the text.
PlannedRung parse_rung(std::string_view text, const FieldText& about = FieldName{"stages"});
std::vector<PlannedRung> parse_rungs(std::string_view text, const FieldText& about = FieldName{"stages"});

// The parts between commas, except commas behind a backslash. They point into `text`.
std::vector<std::string_view> split_list(std::string_view text);

// The shortest text that parse_rung and parse_rungs read as these rungs.
std::string rung_text(const PlannedRung& rung);
std::string rungs_text(std::span<const PlannedRung> rungs);

// The stage that a run records: the name, else the stages ("bf16+compile"), else the values ("lr=3e-4").
std::string stage_text(const PlannedRung& rung);

// One rung: the recipe with these stages and values, and all before them, applied.
struct Rung {
  std::string stage;  // stage_text
  std::string title;
  Recipe recipe;
  std::string changed;  // the difference from the previous rung (a check: from the baseline)
  double seed_tokens_per_s = missing;
  // The rung whose loss is this one's reference: the last earlier one that changes training results, else the baseline.
  // A rung on the baseline alone is compared with the baseline.
  int loss_against = 0;
  int stands_on = -1;  // the rung whose recipe it was applied to, below it; -1: none, it is the baseline
  int asked = -1;      // its place among the rungs asked for; -1: the baseline, which nobody named
};

struct SkippedRung {
  std::string stage;  // stage_text
  FieldText reason;   // one that begins with a field ("nproc: ...") is about the recipe's value
  int asked = 0;      // its place among the rungs asked for
};

struct LadderPlan {
  std::vector<Rung> rungs;
  std::vector<SkippedRung> skipped;  // impossible with this device or recipe, or slow and not asked for
};

enum class Climb { together, alone };  // each rung on top of those before it, or each on the baseline alone

// Completes a rung's recipe and checks it against its files (RecipeError, DataError).
using PrepareRung = std::function<Recipe(const Recipe&)>;

// The baseline, then one rung for each further one in the order asked for. Rungs that the device, the recipe or
// `prepare` refuses are skipped and listed. `baseline` is the first rung whether named or not: `base` without the
// stages that follow. Named again, it is a rung with no new stage, which shows the effect of other values or the noise
// between two equal measurements. A check is applied to the baseline alone; later rungs don't have it. Throws
// RecipeError for an unknown id, or for a stage that a rung adds once more and changes nothing else, and what is wrong
// with the baseline.
LadderPlan plan_ladder(const Recipe& base, std::span<const PlannedRung> rungs, const DeviceReport& report,
                       Climb climb = Climb::together, const PrepareRung& prepare = {});

}  // namespace stepladder
