// The Advisor's suggestions for a run. Written when a view asks for them (DataRequests::advice).
#pragma once

#include <cstdint>
#include <vector>

#include "storage/analysis/advice.h"
#include "storage/analysis/prediction/prediction.h"
#include "storage/records.h"

namespace stepladder {

struct AdviceView {
  RunId about = 0;
  std::uint64_t made_for = 0;  // Workspace::version
  std::vector<Advice> list;
  std::vector<AdviceOutcome> outcomes;
  std::vector<PastPrediction> past;  // of stages, with what was measured then
};

}  // namespace stepladder
