// What the printed times and rates of a run really count. Labels are evidence, arithmetic is proof: tokens per step =
// rate x time holds for one pair of units only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/importers/logs/lines/printed_unit.h"
#include "storage/records.h"

namespace stepladder {

// One step's printed figures, in whatever units.
struct PrintedRate {
  double time = missing;
  double rate = missing;
};

struct UnitEvidence {
  std::vector<PrintedRate> steps;
  TimeUnit time_unit = TimeUnit::unknown;  // by its label
  RateLabel rate = RateLabel::none;
  std::string rate_text;             // as printed
  std::int64_t tokens_per_step = 0;  // 0: not known
  bool tokens_are_certain = false;   // given by the user or printed as such, not worked out from batch and sequence
  std::int64_t seq = 0;              // tokens of a sequence; 0: not known
  std::int64_t steps_between = 1;    // steps from one printed line to the next
  bool since_start = false;          // the times are differences of a clock, which unlabelled counts seconds
};

enum class RateMeaning { unknown, tokens_per_s, tokens_per_ms, samples_per_s, iterations_per_s };

struct Units {
  double ms_per_time = 1;            // printed time x this = milliseconds
  double per_step = 1;               // ... and divided by this = one step
  std::int64_t tokens_per_step = 0;  // 0: still not known
  RateMeaning rate = RateMeaning::unknown;
  double rate_scale = 1;   // devices, where the rate is that of one
  std::string unit;        // "tokens/ms printed as tokens/sec"; empty: no rate was printed
  std::string arithmetic;  // one sentence that a reader can redo; empty: nothing was worked out
};

Units infer_units(const UnitEvidence& evidence);

// The roundest whole number within `error` of `tokens` (batches and sequences are round), where that can't be chance: a
// multiple of 2^k is found near any number once 2^k is as small as the error. 0 where there is none.
std::int64_t roundest(double tokens, double error);

// N where value is N within `tolerance`, a number of devices or of accumulated batches; else 0.
std::int64_t small_count(double value, double tolerance = 0.01);

}  // namespace stepladder
