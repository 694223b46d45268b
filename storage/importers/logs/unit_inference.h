// Infers the units of a run from its first steps: tokens of a step, whether a time is a clock or a step's time, and
// the unit that the printed rate counts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "storage/importers/logs/log_facts.h"
#include "storage/importers/logs/printed_step.h"

namespace stepladder {

// The labels of a run's values: the first one that names a unit counts for the whole run.

struct StepLabels {
  TimeUnit time_unit = TimeUnit::unknown;
  TimeUnit elapsed_unit = TimeUnit::unknown;
  RateLabel rate = RateLabel::none;
  std::string rate_text;           // as printed: "tokens/sec"
  std::int64_t planned_steps = 0;  // 0: not known
  bool process_clock = false;      // the time since the start began with the process
  bool rounded_tokens = false;     // tokens were printed with few digits
  bool per_device = false;         // the rate is one device's
  bool time_of_step = false;       // the time is called that of a step

  // Takes the labels of a line that no earlier line had.
  void read(const StepLine& line);

  // Converts the values that `line` printed to these units. Drops a rate with another label.
  void convert(const StepLine& line, const RunProgress& run, PrintedStep& printed) const;
};

// An assumption or a conclusion, a sentence.
struct InferredNote {
  std::int64_t line = 0;
  std::string text;
};

// The conversion of printed values to those of a StepRecord.
struct InferredUnits {
  std::int64_t tokens_per_step = 0;  // 0: not known
  double ms_per_time = 1;            // printed time x this = milliseconds
  double per_step = 1;               // ... and divided by this = one step
  double tokens_rate_to_s = 0;       // printed rate x this = tokens/s; 0: the rate does not count tokens
  double rate_to_steps = 0;          // printed rate x this = steps/s; 0: the rate doesn't give a step time
  bool rate_is_iterations = false;
  bool time_is_clock = false;     // the values labelled as times count from the start
  bool elapsed_is_step = false;   // the values labelled as time since the start are steps' times
  bool clock_is_coarse = false;   // the time since the start has too few digits to be used
  bool process_clock = false;     // the time since the start began before the first step
  bool stamps_are_clock = false;  // only the lines' time stamps show how long a step took
  PrintedUnits printed;
  std::vector<InferredNote> notes;
};

struct FirstSteps {
  std::span<PrintedStep> steps;      // at least one; a time that is a clock becomes `elapsed`, and the reverse
  StepLabels& labels;                // changed along with the steps: a clock keeps its unit
  LogFacts& facts;                   // receives the sequences of a step if the lines print them
  std::int64_t tokens_per_step = 0;  // given by the user; 0: not given
  bool step_is_epoch = false;
  bool is_known_program = false;  // of a family that times each step
};

InferredUnits infer_run_units(FirstSteps first);

// Whether more steps may show that what is called their time counts from the start: so far it has only grown.
bool may_be_a_clock(std::span<const PrintedStep> steps);

}  // namespace stepladder
