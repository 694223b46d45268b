// Maps the names under which other trackers' users log their numbers to meanings: train/loss, val_loss, lr-AdamW/pg1,
// time_metrics/end_to_end(s), throughput(tps). One table for all stores.
#pragma once

#include <string_view>

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
inline constexpr int metric_roles = 11;
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

}  // namespace stepladder
