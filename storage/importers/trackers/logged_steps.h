// Turns the numbers of a run, as other trackers and scripts log them, into step records and metrics: of a run that is
// read whole in one batch, of one that grows batch after batch, by the same rules.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "storage/importers/journal/journal_reader.h"
#include "storage/importers/trackers/metric_names.h"
#include "storage/records.h"

namespace stepladder {

struct LoggedBatch {
  std::vector<StepRecord> steps;  // by step, each once, with the fields that the batch knows
  // The values that the same batch had of some of these steps before they were logged again, oldest first.
  std::vector<StepRecord> repeated;
  struct Values {
    Metric metric;
    std::vector<MetricPoint> points;  // in the order of logging; none if `metric.field` has them
  };
  std::vector<Values> metrics;
  bool dt_is_derived = false;  // from the times of logging, since no metric is a step time

  // What the derived values rest on, for notes.
  double typical_time = missing;  // the median of the logged step times, in their own unit
  double unit_ms = missing;       // of that unit; missing: not known
  double wall_ms = missing;       // the median of the differences of the times of logging, a step
  bool uses_samples = false;      // tokens are samples per second x dt x tokens of a sample
  bool has_unused_rate = false;   // a throughput doesn't give the tokens of its step

  // Whether an earlier batch of the same attempt may have had this step: then both are parts of one record.
  bool may_have(std::int64_t step) const { return step >= lowest_before && step <= highest_before; }
  std::int64_t lowest_before = INT64_MAX;
  std::int64_t highest_before = -1;
};

// A loss that is logged twice for one step: the later one alone counts, or the earlier is one of LoggedBatch::repeated.
enum class RepeatedLoss { replaces, is_kept };

// The numbers since the last `take`. Which metric is the loss, and so on, is decided by the first batch that has such a
// metric, and then stays.
class LoggedSteps {
 public:
  explicit LoggedSteps(RepeatedLoss repeated = RepeatedLoss::replaces) : repeated_loss_(repeated) {}
  // `state` of an earlier reader; text that isn't one is ignored.
  explicit LoggedSteps(const std::string& state, RepeatedLoss repeated = RepeatedLoss::replaces);

  // Steps below 0 and beyond 10^15 are counted and skipped.
  void add(std::string_view name, std::int64_t step, double value, double at);
  // Many at once, which are good and as `as_logged` makes them.
  void add(const std::string& name, std::vector<MetricPoint> points);
  void add_timed(std::int64_t step, double ms, std::int64_t tokens, double at);

  // `tokens_per_sample` (0: unknown) turns samples into tokens.
  LoggedBatch take(std::int64_t tokens_per_sample = 0);

  // The state that a later reader needs to continue; JSON.
  std::string state() const;

  // Call when the run returns to an earlier step: later numbers belong to other records than those so far.
  void begin_attempt();

  std::uint64_t bad_steps() const { return bad_steps_; }
  std::string name_of(MetricRole role) const { return chosen_[static_cast<std::size_t>(role)]; }
  bool has_timed_steps() const { return timed_; }
  // If all steps so far that have it agree, else 0.
  std::int64_t tokens_per_step() const { return std::max<std::int64_t>(tokens_, 0); }

 private:
  struct Draft {
    StepRecord record;
    double counted_at = missing;  // the time of the metric that counts the steps
    std::array<double, metric_roles> speed{};
  };
  using Drafts = std::vector<Draft>;  // by step
  struct Timed {
    std::int64_t step;
    double ms;
    std::int64_t tokens;
    double at;
  };

  bool is_good(std::int64_t step);
  void set_field(Draft& draft, double& place, MetricRole role, double value);
  void choose();
  Drafts empty_drafts() const;
  Drafts drafts();
  std::vector<double> wall_times(const Drafts& drafts);
  void set_times(Drafts& drafts, LoggedBatch& batch);
  void set_tokens(Drafts& drafts, std::int64_t tokens_per_sample, LoggedBatch& batch);
  std::vector<LoggedBatch::Values> take_metrics();

  std::map<std::string, std::vector<MetricPoint>, std::less<>> columns_;
  std::vector<Timed> timed_steps_;
  std::vector<StepRecord> repeated_;
  RepeatedLoss repeated_loss_;
  std::uint64_t bad_steps_ = 0;

  // The state.
  std::array<std::string, metric_roles> chosen_;  // by role; `none`: counts the steps if no metric has a role
  double unit_ms_ = missing;                      // of a step time whose name has no unit
  bool timed_ = false;                            // the script times its steps itself
  bool sums_up_ = false;                          // "train_steps_per_second" is of the whole training
  std::int64_t tokens_ = 0;                       // of a step; 0: not known, -1: they differ
  std::int64_t last_step_ = -1;                   // that was counted
  double last_at_ = missing;
  std::int64_t seen_step_ = -1;  // the last one with a number of tokens seen
  double seen_ = missing;
  std::int64_t lowest_ = INT64_MAX;
  std::int64_t highest_ = -1;
};

}  // namespace stepladder
