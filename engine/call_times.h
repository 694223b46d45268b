// The time of each call of a model's passes (`stepladder profile`). Not to be confused with a run's time by operator,
// StepProfile. Plain values, no torch.
#pragma once

#include <string>
#include <vector>

#include "engine/recipe.h"

namespace stepladder {

struct CallTimesRequest {
  Recipe recipe;                   // shape, batch, device, threads; "auto" is resolved
  std::vector<int> warmups{0, 1};  // calls before the timed ones
  std::string precision;           // "fp32", "bf16"; "": both, where the device has bf16
  int calls = 5;                   // timed of each row; with `spread` at least
  // Makes more calls than `calls` until the standard error of each row's mean, without the first call, is at most this
  // share of it. 0: makes no more.
  double spread = 0;
  double seconds = 0;     // a row that has used its equal share gets no more calls, but one; 0: no limit
  bool is_synced = true;  // false: reads the clock without waiting for the device, which gives too small times
};

struct CallTimes {
  std::string computation;  // "forward" (with the loss), "backward", "forward_backward"
  std::string precision;    // "fp32", or "bf16" by autocast
  int warmup = 0;
  std::vector<double> ms;  // of each timed call, until the device has finished
};

}  // namespace stepladder
