// Maps the names under which other trackers' users log their numbers to meanings: train/loss, val_loss, lr-AdamW/pg1,
// time_metrics/end_to_end(s), throughput(tps). One table for all stores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/by_enum.h"
#include "storage/records.h"

namespace stepladder {

enum class MetricRole {
  none,  // a metric without a field in a step record
  loss,
  val_loss,
  lr,
  grad_norm,
  step_time,        // scaled: milliseconds
  steps_per_s,      // scaled: per second
  tokens_per_s,     // scaled: per second
  samples_per_s,    // scaled: per second
  tokens_per_step,  // tokens of one step
  tokens_seen,      // tokens of all steps so far
};
inline constexpr int metric_roles = enum_count<MetricRole>();
std::string_view to_string(MetricRole role);

struct MetricMeaning {
  MetricRole role = MetricRole::none;
  double scale = 1;     // value x scale is in the role's unit; 0: the name has no unit
  int second_rate = 0;  // if several names have one role, the lowest wins: an epoch's mean and a test set are last
};

// Case and punctuation are ignored: "Train Loss", "train_loss" and "trainLoss" are one name.
MetricMeaning meaning_of_metric(std::string_view name);

// How likely a metric of this name is the run's step: "trainer/global_step" before "iter"; 0: it isn't named so.
// Negative: it is that of an evaluation ("val/step").
int rank_as_step(std::string_view name);

// Converts a metric's numbers to those of a step: shared by stores that are read whole (metric_table.h) and journals
// that are read as they grow (logged_steps.h).

inline constexpr std::int64_t highest_logged_step = 1'000'000'000'000'000;

// All NaNs become the same, since none may look like `missing`.
double as_logged(double value);

// The step's field with this role; null if it has none.
double* field_of(StepRecord& record, MetricRole role);

// The upper of the two in the middle; `missing` if there is no value.
double middle_of(std::vector<double> values);

// The factor that makes milliseconds of a time without a unit: 1 or 1000, whichever gives a value near the wall clock,
// else `missing`.
double unit_near(double typical, double wall_ms);

// Whether a number can be that of a step's tokens.
bool usable_count(double tokens);

// One of several metrics with the same role. The one with the most values is better, except epochs' means and test
// sets.
struct RoleCandidate {
  std::size_t values = 0;
  int second_rate = 0;  // MetricMeaning::second_rate
};
bool is_better(const RoleCandidate& a, const RoleCandidate& b);

// The metric of this name and role. If it was chosen for its role, a loss's values are in the steps' field: to the bit,
// as no other field has them.
Metric logged_metric(const std::string& name, MetricRole role, bool is_chosen);

}  // namespace stepladder
