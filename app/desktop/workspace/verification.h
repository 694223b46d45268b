// A factor that is being repeated until it is clear (ConfirmSpeedup). Written by the commands of ladders.
#pragma once

#include <vector>

#include "storage/analysis/judgement.h"
#include "storage/records.h"

namespace stepladder {

struct Verification {
  LadderId ladder = 0;
  int baseline = 0;
  int rung = 0;
  int max_repeats = 0;
  std::vector<Gain> answers;  // after each round
  bool open = false;
};

}  // namespace stepladder
