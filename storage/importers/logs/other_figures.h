// The figures of a log, besides the times of its steps, that have to agree with these: rates, counters, the parts of a
// step, the training's own total. By them a gain in the step times can be denied (storage/analysis/step_sums.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "storage/importers/logs/log_facts.h"
#include "storage/importers/logs/printed_step.h"
#include "storage/importers/logs/unit_inference.h"

namespace stepladder {

class OtherFigures {
 public:
  // Reads a step's line; those of the first few thousand steps are enough.
  void read_step(std::string_view line, std::int64_t step);
  void add_step(const PrintedStep& step, const InferredUnits& units, RateLabel rate);
  // Takes the total time of the training from a line that names one.
  void read_total(std::string_view line);

  // As PrintedUnits::per_step.
  std::map<std::string, double> per_step(const LogFacts& facts) const;

 private:
  struct Counter {
    MetricPoint first, last;
    std::int64_t points = 0;
  };
  void add(std::string_view name, std::string_view unit, const MetricPoint& point);

  std::size_t lines_ = 0;

  std::vector<double> dt_ms_;  // of the first steps, as all values here
  std::int64_t first_step_ = 0, last_step_ = 0;
  std::map<std::string, std::vector<double>> rates_, parts_;
  std::map<std::string, Counter> counters_;
  double total_s_ = missing;
};

}  // namespace stepladder
