// The facts about a stage that analysis needs. Each file in engine/stages/ fills in its own; storage keeps no list of
// stages, so the caller passes one.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "storage/analysis/prediction/stage_law.h"
#include "storage/analysis/recipe_facts.h"
#include "storage/records.h"

namespace stepladder {

// The way in which a stage speeds up or steadies a step. The advisor looks for the matching cost in a run's own
// numbers.
enum class StageEffect {
  other,                // a run's numbers don't predict its gain; only a measurement shows it
  faster_matmuls,       // matrix products in another precision: `precision`
  fused_attention,      // attention scores aren't written to memory
  fused_update,         // the optimiser makes one pass over the parameters
  tiled_vocabulary,     // the head's columns fill the tensor cores' tiles
  clipped_gradients,    // one bad batch cannot throw the weights far
  learning_rate_climb,  // the first steps are small
  fewer_exchanges,      // processes exchange gradients once for several micro-batches
};

// Throughputs that somebody else measured without and with a stage, in tokens/s.
struct PublishedGain {
  std::string device;  // "cuda"
  double before = 1;
  double after = 1;
  std::string source;  // "a log of GPT-2 124M on an A100"

  double factor() const { return after / before; }
};

struct KnownStage {
  std::string id;
  std::string title;
  // Its names in other people's logs: beginnings of words in lower case, "+" between words that must both be there.
  // Empty: no log matches.
  std::vector<std::string> words;
  StageEffect effect = StageEffect::other;
  std::string precision;  // "tf32"
  std::string risk;       // its possible cost; empty: none
  std::vector<PublishedGain> published;
  // Whether a run is known not to use it. Without this function the advisor doesn't suggest the stage for speed.
  std::function<bool(const Run&, const RecipeFacts&)> is_off;
  // What it does to the rows of a traced step; every stage states it, if only that it changes none.
  StageLaw law = {};
};

// The id of the stage that a run measures, or nothing. A run launched here names its stage; an imported run's is
// inferred from its log ("Pytorch Flash attention", "torch.compile, 'max-autotune'"). `stages` is in ladder order, and
// the last one named counts: a rung's description often names the stages below it too.
std::string known_stage(const Run& run, std::span<const KnownStage> stages);

}  // namespace stepladder
