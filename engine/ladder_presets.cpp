// The published ladders with their measured throughputs (`plan(...)`, one entry each), and fit_to_memory, which shrinks
// a preset until every rung's estimated memory fits. The estimate is rough and in float32; it decides only how small to
// start.
#include "engine/ladder_presets.h"

#include <algorithm>

#include "engine/nearest.h"

namespace stepladder {
namespace {

struct MeasuredRung {
  const char* text;
  double tokens_per_s;  // the median of the steps after the first, if the log has times
};

LadderPreset plan(std::string name, std::string log, std::string note, int batch, int seq,
                  std::initializer_list<MeasuredRung> rungs) {
  LadderPreset plan{.name = std::move(name), .log = std::move(log), .note = std::move(note)};
  apply_preset(plan.base, "gpt2");
  plan.base.tied_head = false;  // all of them start this way
  plan.base.init = Init::pytorch;
  plan.base.batch = batch;
  plan.base.seq = seq;
  plan.base.steps = 50;
  for (const MeasuredRung& rung : rungs) {
    plan.rungs.push_back(parse_rung(rung.text));
    plan.rungs.back().seed_tokens_per_s = rung.tokens_per_s;
  }
  return plan;
}

int halved(int value, int times) {
  return std::max(1, value >> times);
}

// The rungs with every batch halved `halvings` times and every sequence cut to `longest`.
std::vector<PlannedRung> smaller(std::vector<PlannedRung> rungs, int halvings, int longest) {
  for (PlannedRung& rung : rungs) {
    for (auto& [name, value] : rung.values) {
      if (name == "batch") value = std::to_string(halved(std::stoi(value), halvings));
      if (name == "seq") value = std::to_string(std::min(std::stoi(value), longest));
    }
  }
  return rungs;
}

// Rough peak memory of training this recipe: weights, gradients, moments, and the activations kept for the backward
// pass (Korthikanti et al. 2022, section 4, without dropout), all in float32.
std::int64_t estimated_memory_bytes(const Recipe& recipe) {
  const std::int64_t tokens = std::int64_t{recipe.batch} * recipe.seq;
  const std::int64_t floats = 4;
  // Per token and layer: LayerNorms, queries, keys, values, attention's output, and four widths twice in the MLP.
  std::int64_t kept = recipe.layers * tokens * recipe.d_model * 17 * floats;
  const bool planned = recipe.compile == Compile::max && recipe.device != "cuda";  // attention in tiles on a CPU
  if (recipe.attention == Attention::explicit_scores && !planned)  // scores, masked scores, probabilities
    kept += recipe.layers * tokens * recipe.heads * recipe.seq * 3 * floats;
  const bool no_logits = recipe.compile != Compile::off && recipe.device != "cuda";  // the CPU's fused classifier
  const std::int64_t logits = no_logits ? 0 : tokens * recipe.padded_vocab() * 3 * floats;
  return parameter_count(recipe) * 4 * floats + kept + logits;
}

}  // namespace

const std::vector<LadderPreset>& ladder_presets() {
  static const std::vector<LadderPreset> plans = {
      plan("a100", "a100-three-rungs", "GPT-2 on one A100: float32, and TF32 on top", 4, 1024,
           {{"baseline", 3'168}, {"baseline", 13'606}, {"tf32", 32'553}, {"bf16-matmul", missing}}),
      // From the second rung on, the clock was read before the GPU had finished: those figures are impossible.
      plan("rtx3080", "rtx3080-4090-ladder", "GPT-2 on one RTX 3080, then on two RTX 4090", 2, 1024,
           {{"baseline", 11'544},
            {"weight-tying", 146'495},
            {"tf32", 121'832},
            {"bf16-matmul", missing},
            {"bf16:batch=3", 148'693},
            {"init-scaling", 149'344},
            {"compile", 209'407},
            {"compile-max", 709'469},
            {"flash-attention:batch=6", 1'335'652},
            {"padded-vocab", 1'353'304},
            {"gpt3-adamw", 1'095'188},
            {"cosine-lr", 1'089'362},
            {"decay-groups", missing},
            {"fused-adamw", missing},
            {"ddp", 211'646}}),
      plan("mps-cuda", "mps-then-cuda", "GPT-2 on an Apple GPU, then on CUDA", 4, 32,
           {{"baseline", missing},
            {"overfit", missing},
            {"weight-tying", missing},
            {"init-scaling", missing},
            {"baseline:seq=256", 9'790},
            {"tf32", 9'880},
            {"bf16-matmul", missing},
            {"bf16:batch=16:seq=1024", 45'870}}),
  };
  return plans;
}

const LadderPreset& ladder_preset(std::string_view name) {
  const auto& plans = ladder_presets();
  const auto found = std::ranges::find(plans, name, &LadderPreset::name);
  if (found != plans.end()) return *found;
  std::vector<std::string> names;
  for (const LadderPreset& known : plans) names.push_back(known.name);
  throw RecipeError(FieldName{"plan"}, unknown_name(name, names));
}

void fit_to_memory(Recipe& base, std::vector<PlannedRung>& rungs, const DeviceReport& report, std::int64_t free_bytes) {
  if (free_bytes <= 0) return;
  const auto fits = [&](Recipe recipe, const std::vector<PlannedRung>& planned) {
    recipe.device = report.resolve(recipe.device);
    const LadderPlan plan = plan_ladder(recipe, planned, report);
    return std::ranges::all_of(plan.rungs,
                               [&](const Rung& rung) { return estimated_memory_bytes(rung.recipe) <= free_bytes; });
  };
  const Recipe asked = base;
  const std::vector<PlannedRung> asked_rungs = rungs;
  for (int halvings = 0; halvings < 20; ++halvings) {
    base.batch = halved(asked.batch, halvings);
    base.seq = asked.seq;
    rungs = smaller(asked_rungs, halvings, 1 << 30);
    if (fits(base, rungs)) return;
    if (base.batch == 1 && halvings > 10) break;
  }
  for (int longest = 1024; longest >= 16; longest /= 2) {
    base.seq = std::min(asked.seq, longest);
    rungs = smaller(rungs, 0, longest);
    if (fits(base, rungs)) return;
  }
}

}  // namespace stepladder
