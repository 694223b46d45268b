// The labels of a run's values: the first one that names a unit counts for the whole run.
#pragma once

#include <cstdint>
#include <string>

#include "storage/importers/logs/printed_step.h"

namespace stepladder {

struct StepLabels {
  TimeUnit time_unit = TimeUnit::unknown;
  TimeUnit elapsed_unit = TimeUnit::unknown;
  RateLabel rate = RateLabel::none;
  std::string rate_text;           // as printed: "tokens/sec"
  std::int64_t planned_steps = 0;  // 0: not known
  bool process_clock = false;      // the time since the start began with the process
  bool rounded_tokens = false;     // tokens were printed with few digits

  // Takes the labels of a line that no earlier line had.
  void read(const StepLine& line);

  // Converts the values that `line` printed to these units. Drops a rate with another label.
  void convert(const StepLine& line, const RunProgress& run, PrintedStep& printed) const;
};

}  // namespace stepladder
