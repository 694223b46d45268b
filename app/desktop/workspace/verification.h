// A factor that is being repeated until it is clear (ConfirmSpeedup). Written by the commands of ladders.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/training_job.h"
#include "storage/analysis/judgement.h"
#include "storage/records.h"

namespace stepladder {

struct Verification {
  LadderId ladder = 0;
  int baseline = 0;
  int rung = 0;
  int max_repeats = 0;
  std::vector<Gain> answers = {};      // before the first round, and after each
  std::vector<RunId> round = {};       // the runs of the latest
  std::optional<QuietWait> wait = {};  // of the run that would run now
  std::string reason = {};             // once it is over: a sentence, why
  bool open = false;
  bool stopped = false;  // by the user, or since a repeat didn't finish

  std::size_t rounds() const { return answers.empty() ? 0 : answers.size() - 1; }  // that are over
};

}  // namespace stepladder
