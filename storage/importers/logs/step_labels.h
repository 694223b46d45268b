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
  bool rounded_tokens = false;     // tokens were printed with few digits

  // Takes from a line what no earlier line said.
  void read(const StepLine& line);

  // Turns what `line` printed into these units. A rate under another label is dropped.
  void convert(const StepLine& line, const RunProgress& run, PrintedStep& printed) const;
};

}  // namespace stepladder
