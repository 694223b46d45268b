// A named figure of several runs against the baseline's: a difference of means with its interval and verdict. Values
// may have any sign, so there is no ratio. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "storage/analysis/compare.h"
#include "storage/analysis/statistics.h"
#include "storage/quantity.h"
#include "storage/records.h"

namespace stepladder {

// The better direction of a field of the steps; unknown for metrics, which state their own (Metric::direction).
Direction better_direction(Quantity quantity);
// What a metric's name says, for one that states nothing: lower of "val_bpb", "loss", "dt_ms", higher of "acc",
// "tokens_per_s", unknown of others.
Direction direction_of_name(std::string_view name);

// Whether a metric is a loss per token by its name, and one of validation: "loss", "val/loss", "eval_ppl".
struct LossName {
  bool is_loss = false;
  bool is_validation = false;
};
LossName loss_name(std::string_view name);

// Why a value can't be the metric's, by its name and by earlier values: a negative perplexity, an accuracy of 97 after
// one of 0.95. Empty: it can.
std::string impossible_value(std::string_view name, double before, double value);

// The difference of a value from the baseline's, and their ratio. `missing` where either isn't finite; the ratio also
// where the baseline's is 0 or of another sign.
double delta_from(double base, double value);
double factor_from(double base, double value);

enum class MetricVerdict { cannot_tell, better, worse, same };
std::string_view to_string(MetricVerdict verdict);  // "cannot-tell"
MetricVerdict metric_verdict(double delta, Direction direction);

struct MetricRules {
  Direction direction = Direction::unknown;  // then nothing is better or worse
  double noise_floor = default_noise_floor;  // a difference that counts as none, as a share of the base's mean
  Looks looks = {};                          // with looks, the values of both sides are pairs, in their order
};

struct MetricComparison {
  double base = missing, value = missing;  // means
  double difference = missing;             // value - base
  Interval ci95;                           // of the difference, with what rounding hides; unknown with fewer than two
                                           // runs a side, or if all of a side are equal (copies) and the means differ
  MetricVerdict verdict = MetricVerdict::cannot_tell;
  std::size_t runs = 0;          // of the side that has fewer
  std::int64_t needed_runs = 0;  // cannot_tell: about how many more of each; 0: not known, or none
};

// better: the difference is beyond the noise floor and all of the interval beyond half of it; worse likewise; same: all
// of the interval is within the noise floor. The interval is Welch's, or of the mean of the pairs' differences by
// Student's t. Values that aren't finite make everything unknown.
MetricComparison judge_metric(std::span<const double> base, std::span<const double> run, const MetricRules& rules);

}  // namespace stepladder
