// The times of single calls of a model's passes, measured here (`stepladder profile`) or printed by a script.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/records.h"

namespace stepladder {

struct StoredCalls {
  std::string computation;  // "forward", "backward", "forward_backward"
  std::string precision;    // "fp32", "bf16"
  int warmup = 0;
  std::vector<double> ms;  // of each timed call
};

struct StoredPasses {
  std::int64_t id = 0;
  std::string name;
  double measured_at = missing;  // unix seconds
  std::string host, hardware, device, model;
  std::int64_t batch = 0, seq = 0, vocab = 0, threads = 0;  // threads: 0 is not known
  bool is_synced = true;                                    // false: the clock didn't wait for the device
  std::vector<StoredCalls> rows;                            // empty in lists
};

}  // namespace stepladder
