// A step on its way from a line of the log to a record, still in the units in which it was printed.
#pragma once

#include <cstdint>

#include "storage/importers/logs/lines/step_line.h"

namespace stepladder {

// One line's part of a step, with the step's number settled.
struct PrintedStep : StepValues {
  PrintedStep() = default;
  explicit PrintedStep(const StepValues& values) : StepValues(values) {}
  std::int64_t step = 0;
  std::int64_t line = 0;
  std::int64_t rank = -1;       // of the process that printed it
  std::int64_t iteration = -1;  // if printed beside the step, which has one or more
  double at = missing;          // unix seconds, from a time stamp in front
  bool estimate = false;        // its loss was measured by an evaluation: a loss of the step itself replaces it
  bool redrawn = false;         // from a progress bar: a later line has the step's final values
  std::int64_t micro = -1;      // which part of the step it measures; -1: all
  std::int64_t parts = 0;       // that were measured so far
  bool tested = false;          // its val_loss is that of a test set
};

// The progress of reading the current run. The number of a step that does not print one depends on it.
struct RunProgress {
  bool open = false;
  bool step_is_epoch = false;
  bool lacks_loss = false;  // the last step has none so far
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::int64_t steps = 0;
};

}  // namespace stepladder
