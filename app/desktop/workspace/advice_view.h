// The Advisor's answer about a run: where its step's time goes and what to try next. Written when a view asks for it
// (DataRequests::advice).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/analysis/advice.h"
#include "storage/analysis/prediction/prediction.h"
#include "storage/analysis/step_profile.h"
#include "storage/records.h"

namespace stepladder {

// A step's time by kind of work, by the run's newest trace, else by its timed operators.
struct StepTimes {
  std::optional<KindTimes> kinds;  // in ms; nullopt: neither is there
  double step_ms = missing;        // all kinds together
  std::string from;                // sentences: which, and what makes it doubtful; or why there is none
  bool has_trace = false;
};

struct AdviceView {
  RunId about = 0;
  std::uint64_t made_for = 0;  // Workspace::version
  std::vector<Advice> list;
  StepTimes times;
  std::string all_together;  // a sentence: what the predicted stages buy one after the other; empty: nothing is
  std::vector<AdviceOutcome> outcomes;
  std::vector<PastPrediction> past;  // of stages, with what was measured then
};

}  // namespace stepladder
