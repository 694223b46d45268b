// Turns numbers by metric name, as other trackers store them, into step records and metrics.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/importers/trackers/metric_names.h"
#include "storage/records.h"

namespace stepladder {

// One run's numbers, in the order in which the store holds them. Needs 24 bytes of memory for each.
class MetricTable {
 public:
  // `at`: unix seconds or `missing`. Steps below 0 and beyond 10^15 are counted and skipped.
  void add(std::string_view name, std::int64_t step, double value, double at);

  // The numbers as they are, for a reader of pieces. Empties the table.
  using Use = std::function<void(const std::string& name, std::span<const MetricPoint>)>;
  void take_points(const Use& use);

  bool empty() const;
  double first_at() const;  // `missing` if no point has a time
  double last_at() const;

  struct LoggedMetric {
    Metric metric;
    std::vector<MetricPoint> points;  // none if `metric.field` has them
  };
  struct Steps {
    std::vector<StepRecord> records;    // by step; of a step logged twice, the newer record is last
    std::vector<LoggedMetric> metrics;  // all names that were logged
    std::vector<std::string> notes;     // a sentence each: what was taken for what, and figures that were derived
    std::int64_t tokens_per_step = 0;   // if all steps that have it agree, else 0
  };

  // `tokens_per_sample` (0: unknown) turns samples into tokens. Empties the table.
  Steps take_steps(std::int64_t tokens_per_sample = 0);

 private:
  struct Column {
    MetricMeaning meaning;
    std::string name;
    std::vector<MetricPoint> points;
  };

  Column& column(std::string_view name);
  std::array<Column*, metric_roles> choose(std::vector<std::string>& notes);
  std::vector<LoggedMetric> take_metrics(const std::array<Column*, metric_roles>& chosen);

  std::map<std::string, Column, std::less<>> columns_;
  Column* last_ = nullptr;  // stores often write one metric in a row
  std::uint64_t bad_steps_ = 0;
  double first_at_ = missing;
  double last_at_ = missing;
};

// "a, b, c and 12 more"
std::string short_list(const std::vector<std::string>& names, std::size_t most = 8);

}  // namespace stepladder
