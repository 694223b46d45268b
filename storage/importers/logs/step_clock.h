// Converts printed steps to records: times, clocks and rates become the milliseconds of a step.
#pragma once

#include <algorithm>
#include <cstdint>

#include "storage/importers/importer.h"
#include "storage/importers/logs/unit_inference.h"

namespace stepladder {

class StepClock {
 public:
  // `sink` gets every record, and notes on how its time was found. It outlives the clock.
  StepClock(InferredUnits units, ImportSink& sink);

  // Takes the run's steps in the order of the log.
  void take(const PrintedStep& printed);

  void pass_on_to(ImportSink& sink) { sink_ = &sink; }

  const InferredUnits& units() const { return units_; }
  bool timed() const { return timed_steps_ > 0; }
  // The step behind which the clock was set to zero once, early in a run whose last step is this; else 0.
  std::int64_t starts_after(std::int64_t last_step) const {
    const bool is_warm_up = restarts_ == 1 && starts_after_ <= std::max<std::int64_t>(20, last_step / 10);
    return is_warm_up ? starts_after_ : 0;
  }
  bool from_clock() const { return 2 * clocked_steps_ > timed_steps_; }  // most of these are differences of a clock

 private:
  double ms_by_clock(const PrintedStep& printed, double elapsed);
  double ms_by_rate(const PrintedStep& printed);
  double ms_by_stamp(const PrintedStep& printed);

  InferredUnits units_;
  ImportSink* sink_;
  double last_clock_ = missing;
  std::int64_t last_clock_step_ = 0;
  std::int64_t restarts_ = 0;
  std::int64_t starts_after_ = 0;  // the step before the last restart
  bool rate_noted_ = false;
  bool longest_noted_ = false;
  std::int64_t timed_steps_ = 0;
  std::int64_t clocked_steps_ = 0;
};

}  // namespace stepladder
