// Finds the values in one line of a training log: step, losses, times, throughput, at any place and in any spelling.
// Doesn't depend on the lines around it. Pure, allocates nothing.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/importers/logs/lines/pair_meaning.h"
#include "storage/records.h"

namespace stepladder {

// The measurements of a step, in the units in which they were printed; `missing` if not printed.
struct StepValues {
  double loss = missing;
  double val_loss = missing;
  double time = missing;
  double elapsed = missing;
  double mean_time = missing;
  double throughput = missing;
  double iterations = missing;  // steps per second
  double lr = missing;
  double grad_norm = missing;
  double tokens = missing;
  double batch_size = missing;
};
inline constexpr std::array step_values{&StepValues::loss,       &StepValues::val_loss,  &StepValues::time,
                                        &StepValues::elapsed,    &StepValues::mean_time, &StepValues::throughput,
                                        &StepValues::iterations, &StepValues::lr,        &StepValues::grad_norm,
                                        &StepValues::tokens,     &StepValues::batch_size};

// The value with this meaning; null if it isn't a value of a step.
double StepValues::*value_of(Field field);

// The content of a line; -1 and `missing` for values that it lacks.
struct StepLine : StepValues {
  std::int64_t step = -1;
  std::int64_t total = -1;  // planned steps: N of "step 5/N"
  std::int64_t batch = -1;  // place within the epoch, if the line counts that way
  std::int64_t batches = -1;
  std::int64_t rank = -1;       // of the process that printed it
  std::int64_t micro = -1;      // K of "micro K/N": it measures a part of a step
  std::int64_t iteration = -1;  // if it counts these beside optimiser steps: a step has one or more
  double epoch = missing;
  double at = missing;  // unix seconds, printed as a number
  TimeUnit time_unit = TimeUnit::unknown;
  TimeUnit elapsed_unit = TimeUnit::unknown;
  RateLabel rate = RateLabel::none;
  std::string_view rate_text;      // its label as printed: "tokens/sec"
  std::string_view val_set;        // the name of val_loss if it names a set, as "eval_wiki_loss" does
  bool bar = false;                // a progress bar: redrawn, and not always at a step's end
  bool keras = false;              // its losses are means over the epoch so far
  bool record = false;             // a dictionary or JSON object
  bool summary = false;            // sums up a whole training
  bool epoch_mean = false;         // its losses are means over an epoch, as fairseq prints them at its end
  bool named_loss = false;         // the loss is called a training loss: "train loss", "trl"
  bool tested = false;             // its val_loss is that of a test set
  bool whole_epoch = false;        // the epoch was written as a whole number
  bool epoch_leads = false;        // ... in front of the place within it: "Epoch 2: 10/100"
  bool from_perplexity = false;    // a loss is the logarithm of the printed value
  bool in_bits = false;            // the perplexity beside a loss is 2 to its power
  bool in_nats = false;            // ... e to its power
  bool interval = false;           // the time is measured since the last line, over any number of steps
  bool time_of_step = false;       // the time is called that of a step, or of so many steps
  bool has_unread_times = false;   // it holds times that aren't a step's, or not certainly (unread_times)
  bool per_device = false;         // the rate is one device's
  bool samples = false;            // its place within the epoch counts samples: "[640/60000 (1%)]"
  bool process_clock = false;      // its elapsed time began with the process, before the first step
  bool rounded_tokens = false;     // "2.05K": the tokens are known to three digits only
  bool counts_iterations = false;  // its number is called that of an iteration, and no other is there
  double rounded_step = 0;         // "15K": the step's number is a multiple of this; 0: it is exact
  bool fractional_step = false;    // it counts a step by a number that isn't whole: "step 1.5"
  bool has_others = false;         // it holds numbers that have a name but no field here (read_other_pairs)

  bool has_step() const { return step >= 0; }
  bool has_loss() const { return !is_missing(loss) || !is_missing(val_loss); }
};

// Reads everything in `line` (one line, no colour codes). `says_step` is whether a training program could have printed
// it: it is false for source code, tables and prose, whatever words they hold.
struct ReadLine {
  StepLine line;
  bool says_step = false;
  bool opens = false;              // counts a step and measures nothing: its values may be on the lines below
  bool bare_loss = false;          // a loss without a count, which belongs to the step or epoch counted above
  std::size_t first_measured = 0;  // where the first measured number, or the step behind it, begins; 0: nowhere
  // Prose or code beside the numbers of a step: it is one if other lines are alike up to the first measured number,
  // which is here; 0: no such line.
  std::size_t doubtful = 0;
};
ReadLine read_step_line(std::string_view line);

struct OtherPair {
  std::string name;       // as printed, without the quotes of a record
  std::string_view unit;  // behind the number; may be empty
  double value = missing;
};

// `line` is what read_step_line found in `text`. Numbers that gave one of its values are skipped.
void read_other_pairs(std::string_view text, const StepLine& line, std::vector<OtherPair>& pairs);

// Whether there are any such numbers; allocates nothing.
bool has_other_pairs(std::string_view text, const StepLine& line);

// The times in `text` that aren't a step's, or not certainly, as printed: "forward 100ms, backward 200ms".
std::string unread_times(std::string_view text);

}  // namespace stepladder
