// The effect of training longer: two pools of one script at two step counts give the loss of a step, and the time that
// the script needs for any loss. A candidate of another loss is then compared at equal loss. Pure.
#pragma once

#include <stdexcept>
#include <string>

#include "storage/analysis/means/mean_test.h"
#include "storage/speedrun/record_pool.h"

namespace stepladder {

// A pool by its means.
struct TradePool {
  double steps = missing;  // of each run
  SampleFigures metric;
  SampleFigures time_s;
};

// A figure with its 95 % interval.
struct Estimate {
  double value = missing;
  Interval ci95;
};

struct LossTrade {
  TradePool fewer, more;     // by step count
  Estimate metric_per_step;  // negative where training longer lowers it
  Estimate s_per_step;
  Estimate s_per_metric;  // seconds of training for a change of 1; negative where longer training lowers the metric
  double at = missing;    // the metric's value at which times are compared
  Estimate steps_at;      // of the two pools' script
  Estimate time_at_s;
  bool extrapolated = false;   // `at` isn't between the two pools' means
  bool is_far_beyond = false;  // by more than half of what is between them
  TradePool candidate;         // n is 0 without one
  Estimate speedup_at;         // time_at_s / the candidate's mean time
  std::string note;            // why a figure is missing; empty if none is
};

// `at`: where times are compared without a candidate; a candidate is compared at its own mean. Either pool may be the
// longer one. Throws TradeError if a pool has no finished run, runs of different lengths, or the other's step count.
struct TradeError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
LossTrade loss_trade(const RecordPool& one, const RecordPool& other, const RecordPool* candidate, double at);

}  // namespace stepladder
