// Reads single values from a line of a speed run's log.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "storage/records.h"

namespace stepladder {

struct StepMark {
  std::int64_t step = 0;
  std::int64_t of = 0;             // 0: not printed
  std::size_t begin = 0, end = 0;  // of the mark within the line
};

// "step:125/1670", "step 00125/21400", "Step 125 |", "s:125" near the line's beginning.
std::optional<StepMark> step_mark(std::string_view line);

// The number that the text begins with, blanks before it aside; `end`: where it ends in the text.
std::optional<double> leading_number(std::string_view text);
std::optional<double> leading_number(std::string_view text, std::size_t& end);

// The number after a key such as "val_loss:"; NaN and infinities count. Nothing if the line lacks the key or has no
// number there.
std::optional<double> number_after(std::string_view line, std::string_view key);

// The metric's value: val_loss, val_bpb and core_metric by the names that speed runs print, any other by its own.
std::optional<double> metric_in(std::string_view line, std::string_view metric);

// The clock in milliseconds: "train_time:123ms", "train_time:12.3s", "total time: 2.32m".
std::optional<double> clock_in(std::string_view line);

// The mean time of a step in milliseconds that a line has beside the clock: "step_avg:95.12ms".
std::optional<double> step_average_in(std::string_view line);

}  // namespace stepladder
