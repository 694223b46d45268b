// The numbers of one run by metric name, as another tracker's store holds them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/importers/trackers/logged_steps.h"
#include "storage/records.h"

namespace stepladder {

// How far the calls of a run that logs no steps were counted.
struct CallCount {
  std::string leading;  // the metric whose calls are the steps
  std::int64_t calls = 0;
  bool has_steps = false;  // a step was logged: nothing is counted
};

// In the order in which the store holds them. Needs 24 bytes of memory for each number.
class MetricTable {
 public:
  // `at`: unix seconds or `missing`. Steps below 0 and beyond 10^15 are counted and skipped.
  void add(std::string_view name, std::int64_t step, double value, double at);

  // The numbers as they are, for a reader of pieces. Empties the table.
  using Use = std::function<void(const std::string& name, std::span<const MetricPoint>)>;
  void take_points(const Use& use);

  // Numbers values that were all logged with step 0, since the program gave none: by the calls of one metric, the loss
  // or the one with the most values, so far; of other metrics by their times. From 0 on.
  void number_calls(CallCount& count);

  bool empty() const;
  double first_at() const;  // `missing` if no point has a time
  double last_at() const;

  struct Steps {
    std::vector<StepRecord> records;           // by step; of a step logged twice, the newer record is last
    std::vector<LoggedBatch::Values> metrics;  // all names that were logged
    std::vector<std::string> notes;    // a sentence each: what was taken for what, and figures that were derived
    std::int64_t tokens_per_step = 0;  // if all steps that have it agree, else 0
  };

  // What LoggedSteps makes of all numbers at once. `tokens_per_sample` (0: unknown) turns samples into tokens. Empties
  // the table.
  Steps take_steps(std::int64_t tokens_per_sample = 0);

 private:
  struct Column {
    std::string name;
    std::vector<MetricPoint> points;
  };

  Column& column(std::string_view name);
  const Column* counter() const;
  std::vector<double> restarts() const;

  std::map<std::string, Column, std::less<>> columns_;
  Column* last_ = nullptr;  // stores often write one metric in a row
  std::uint64_t bad_steps_ = 0;
  double first_at_ = missing;
  double last_at_ = missing;
};

// "a, b, c and 12 more"
std::string short_list(const std::vector<std::string>& names, std::size_t most = 8);

}  // namespace stepladder
