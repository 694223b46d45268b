// The Advisor's answer about a run: where its step's time goes and what to try next. Written when a view asks for it
// (DataRequests::advice).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "storage/analysis/advice.h"
#include "storage/analysis/prediction/prediction.h"
#include "storage/analysis/step_profile.h"
#include "storage/records.h"

namespace stepladder {

struct AdviceView {
  RunId about = 0;
  std::uint64_t made_for = 0;                                   // Workspace::version
  std::vector<Advice> list;                                     // with the stages that nothing is known about
  std::map<std::string, std::string, std::less<>> unavailable;  // why a stage of the list can't be launched here
  FittedProfile times;                                          // of no steps if the run has no profile
  bool has_trace = false;
  std::string levers;  // a sentence: the stages that make the most expensive kind of work faster, and what each bought
  std::vector<std::string> notes;    // sentences: what the predicted stages buy together, and what makes it doubtful
  std::vector<PastPrediction> past;  // of stages, with what was measured then
  std::string problem;               // why there is no answer; empty: none
};

}  // namespace stepladder
