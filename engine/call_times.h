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
  int calls = 5;                   // timed
};

struct CallTimes {
  std::string computation;  // "forward" (with the loss), "backward", "forward_backward"
  std::string precision;    // "fp32", or "bf16" by autocast
  int warmup = 0;
  std::vector<double> ms;  // of each timed call, until the device has finished
};

}  // namespace stepladder
