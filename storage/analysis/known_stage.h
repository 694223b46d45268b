// The facts about a stage that analysis needs. Each file in engine/stages/ fills in its own; storage keeps no list of
// stages, so the caller passes one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "storage/analysis/prediction/stage_law.h"
#include "storage/records.h"

namespace stepladder {

struct KnownStage {
  std::string id;
  std::string title;
  // Its names in other people's logs: beginnings of words in lower case, "+" between words that must both be there.
  // Empty: no log matches.
  std::vector<std::string> words;
  // What it does to the rows of a traced step; every stage states it, if only that it changes none.
  StageLaw law = {};
};

// The id of the stage that a run measures, or nothing. A run launched here names its stage; an imported run's is
// inferred from its log ("Pytorch Flash attention", "torch.compile, 'max-autotune'"). `stages` is in ladder order, and
// the last one named counts: a rung's description often names the stages below it too.
std::string known_stage(const Run& run, std::span<const KnownStage> stages);

}  // namespace stepladder
