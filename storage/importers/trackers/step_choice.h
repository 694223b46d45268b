// Which logged number is the step, in stores that count the calls of log() (W&B, Trackio): a script that doesn't pass a
// step logs it as "iter", "global_step", "trainer/global_step" and the like.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "storage/importers/trackers/metric_table.h"
#include "storage/json_values.h"
#include "storage/records.h"

namespace stepladder {

// One call of log().
struct LoggedRow {
  std::int64_t counted = 0;  // the store's own step
  double at = missing;
  std::vector<std::pair<std::string, double>> values = {};

  double value(std::string_view name) const;  // `missing` if it wasn't logged
};

// The choice is made for the whole run, by its first rows: a number that grows, is whole, named as a step, and logged
// with the losses. Without one, or if the script passed steps itself, the store's own step counts.
class StepChoice {
 public:
  // `given`: the user's choice; empty: none. `state` is that of an earlier reader, or null.
  explicit StepChoice(std::string given = {}, const Json& state = nullptr);

  // W&B's define_metric: the step of the metrics whose names `pattern` matches ("train/*").
  void define(const std::string& pattern, const std::string& step_metric) { defined_[pattern] = step_metric; }

  // Passes the row's numbers on to `table` at their step, now or once there are enough rows to decide.
  void add(LoggedRow row, MetricTable& table);
  // There are no more rows for now: decides, and passes on those that wait.
  void flush(MetricTable& table);

  const std::string& name() const { return name_; }  // of the number; empty: the store's own step
  std::string note() const;                          // a sentence about the choice; empty: there was none
  Json state() const;

 private:
  struct Kind {
    bool is_loss = false;  // of the training
    int rank = 0;          // rank_as_step
  };
  Kind kind_of(const std::string& name) const;
  bool logs_loss(const LoggedRow& row) const;
  void decide();
  bool is_step(std::string_view name) const;
  // Whether the store's own step goes up by one from call to call.
  bool counts_calls() const { return ones_ >= 9 * jumps_; }
  std::string defined_step() const;
  void pass(const LoggedRow& row, MetricTable& table);

  std::string name_;
  std::map<std::string, std::string> defined_;  // by pattern
  std::vector<LoggedRow> waiting_;
  std::map<std::string, double, std::less<>> before_;    // counts of an undecided piece's last row with a loss, by name
  mutable std::unordered_map<std::string, Kind> kinds_;  // by name
  std::int64_t last_ = 0;                                // step
  std::int64_t counted_ = -1;                            // the last call's own step
  std::int64_t ones_ = 0, jumps_ = 0;                    // how often it grew by one, and by more
  bool is_given_ = false;
  bool has_step_ = false;  // a call had the number
  bool is_open_ = true;    // not decided yet
  bool is_defined_ = false;
};

}  // namespace stepladder
