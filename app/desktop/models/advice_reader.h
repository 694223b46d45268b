// Makes the Advisor's answer about a run on another thread, since it judges up to a hundred runs of ladders. UI thread.
#pragma once

#include <chrono>
#include <string>

#include "app/desktop/models/background.h"
#include "app/desktop/workspace.h"
#include "app/desktop/workspace/advice_view.h"
#include "storage/database/run_store.h"

namespace stepladder {

// "1.35 x to 1.43 x", "at most 1.05 x"; and the same with what makes it sure or not: "1.35 x (faster, one run)".
std::string range_words(const ExpectedGain& gain);
std::string gain_words(const ExpectedGain& gain);

class AdviceReader {
 public:
  bool is_pending() const { return background_.is_pending(); }

  // Starts unless an answer is on its way. `store` is read through a connection of its own, or directly if it is in
  // memory: returns whether the answer is there at once. A failure is the answer's `problem`.
  bool ask(Workspace& workspace, RunStore& store, RunId about);

  // Call in every frame. Returns whether `into` was replaced.
  bool take(AdviceView& into, std::chrono::milliseconds patience) { return background_.take(into, patience); }

 private:
  Background<AdviceView> background_;
};

}  // namespace stepladder
