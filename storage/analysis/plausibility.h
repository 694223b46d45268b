// Reasons to distrust a run's numbers, each with the arithmetic that shows it, so that a reader can redo it by hand.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/analysis/hardware.h"
#include "storage/analysis/mfu.h"
#include "storage/analysis/summary.h"
#include "storage/records.h"

namespace stepladder {

enum class FlagId {
  impossible_throughput,   // 6 N x tokens/s is over the dense peak of the hardware in that precision
  suspicious_throughput,   // over 70 % of it, which nobody has published for a whole training step
  unit_tokens_per_ms,      // the log calls tokens per millisecond tokens per second
  dt_throughput_mismatch,  // dt, tokens per step and printed throughput do not fit together
  nonfinite_loss,
  step_overlap,     // steps that were written more than once
  clock_backwards,  // negative dt, or a wall clock that went back
  missing_dt,
  no_sync,           // the clock was read without waiting for the device
  not_repeated,      // one run says nothing about the spread between runs
  unknown_hardware,  // no peak to hold the throughput against
};
inline constexpr std::array all_flags{FlagId::impossible_throughput,
                                      FlagId::suspicious_throughput,
                                      FlagId::unit_tokens_per_ms,
                                      FlagId::dt_throughput_mismatch,
                                      FlagId::nonfinite_loss,
                                      FlagId::step_overlap,
                                      FlagId::clock_backwards,
                                      FlagId::missing_dt,
                                      FlagId::no_sync,
                                      FlagId::not_repeated,
                                      FlagId::unknown_hardware};
std::string_view to_string(FlagId id);  // "impossible-throughput"

struct Flag {
  FlagId id;
  std::string why;  // one sentence or two
};

inline constexpr double suspicious_share = 0.7;

// N for 6 N: the run's own; else of the GPT-2 that its recipe or its names name; else, where its first loss is
// that of an untrained model with GPT-2's vocabulary (ln 50,257 = 10.8), of the smallest GPT-2. `why` says so for all
// but the first. 0: not known.
struct AssumedParams {
  std::int64_t count = 0;
  std::string why;
  bool from_loss_alone = false;
};
AssumedParams params_of(const Run& run, const Summary& summary);

// What the conventions of storage/analysis/mfu.h need: the recipe's values; where it has none, those of the published
// GPT-2 that has as many parameters as params_of says. What is not known is 0.
ModelShape shape_of(const Run& run, const Summary& summary);

// What all devices of a run together could do.
Peak peak_of(const Run& run, const HardwareTable& hardware);

// In the order of FlagId. `repeats`: how many runs its rung has, itself included. A run that is not over yet, and
// one without steps, has none.
std::vector<Flag> flags_of(const Run& run, const Summary& summary, int repeats, const HardwareTable& hardware);

bool is_impossible(std::span<const Flag> flags);

// How many runs each rung has, so that each run knows whether it was repeated. A run outside a ladder stands alone.
class RepeatCounts {
 public:
  void add(const Run& run);
  int of(const Run& run) const;

 private:
  std::map<std::pair<LadderId, int>, int> counts_;
};

// What flags_of holds a throughput against: 6 N x tokens/s, and the dense peak. N may be assumed (params_of). Missing
// where it is not known.
struct PhysicalLimit {
  double tflops = missing;
  double peak_tflops = missing;   // of all devices together
  double tokens_per_s = missing;  // at that peak
};
PhysicalLimit limit_of(const Run& run, const Summary& summary, const HardwareTable& hardware);

// 6 N of the peak that `hardware` knows. Missing where N, the throughput or the peak is not known; an N that only
// the first loss suggests is not enough. `convention` names the peak where the run's own precision has none.
struct RunUtilisation {
  double flops_per_token = missing;
  double mfu = missing;
  std::string convention;  // empty where there is no mfu
};
RunUtilisation utilisation_of(const Run& run, const Summary& summary, const HardwareTable& hardware);

}  // namespace stepladder
