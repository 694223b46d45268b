// Finds which step a line describes, even if it doesn't print the number: bars, records, epochs, losses without a
// count.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "storage/importers/logs/lines/log_lines.h"
#include "storage/importers/logs/printed_step.h"

namespace stepladder {

// The effect of a line that measures a step on the run.
struct Counted {
  enum class What : std::uint8_t {
    nothing,
    step,
    validation,     // the validation loss of a step that was already counted
    out_of_bounds,  // the number cannot be that of a step
  };
  What what = What::nothing;
  PrintedStep step;
  const StepLine* line = nullptr;  // with the labels of the step's values; valid until the counter's next call
};

// Counts the steps of one run after the other. `run` is how far that has been read; `new_block` is whether a heading,
// an item of a list or a fence was read since its last step.
class StepCounter {
 public:
  Counted count(const LogLine& line, const RunProgress& run, bool new_block);

  // The step of a loss without a count: the epoch that a heading named. Nothing if that epoch has a loss already.
  Counted count_bare_loss(const LogLine& line, const RunProgress& run, bool new_block) const;

  // A bar without a loss counts the dictionaries around it. Returns the number of the only step so far if the bar shows
  // that it wasn't step 1.
  std::optional<std::int64_t> follow_bar(const StepLine& line, const RunProgress& run, bool new_block);

  // Whether a bar counts the records without a number around it.
  bool has_bar() const { return bar_.total > 0; }
  // The steps of several records with these epochs between the last bar and the next (-1: none).
  std::vector<std::int64_t> place(std::span<const double> epochs, std::int64_t next_bar, const RunProgress& run,
                                  bool new_block, bool& is_certain) const;
  // The step of one record with this epoch between the last bar and the next: one of these two. -1: neither.
  std::int64_t place_one(double epoch, std::int64_t next_bar, const RunProgress& run, bool new_block) const;
  // The number of the next record.
  void set_next(std::int64_t step) { placed_ = step; }
  // Whether a bar of this many steps is the one that counts.
  bool is_bar(std::int64_t total) const { return bar_.total == total; }

  // The steps from one printed step to the next.
  std::int64_t step_gap() const { return step_gap_; }
  // The steps of the training by its bar, if that counts them and isn't full; else -1.
  std::int64_t unfilled_bar() const { return bar_.step >= 0 && bar_.step < bar_.total ? bar_.total : -1; }

  // Whether the bar began again at 0 and went at once beyond the run's first step: the training goes on from a
  // checkpoint.
  bool resumes(const RunProgress& run) const { return bar_.starts_over && bar_.first > run.first_step; }
  // Whether the training's bar has shown a step.
  bool has_begun() const { return bar_.step > 0; }

  // Returns the mean that an unfinished bar showed last, which counts because no finished bar follows.
  Counted release_held();

  // A heading names the epoch of the lines below.
  void begin_epoch(double epoch) { epoch_ = epoch; }

  // Ends the run; the step that was counted last may be the first of the next.
  void end_run();

  // Whether the steps that such a line counts are epochs.
  bool counts_epochs(const StepLine& line) const {
    return !line.has_step() && line.batch < 0 && (!line.record || records_are_epochs_);
  }

 private:
  struct TrainerBar {
    std::int64_t step = -1;
    std::int64_t total = -1;
    double rate = missing;     // "1.95it/s"
    double time = missing;     // "1.20s/it"
    bool starts_over = false;  // it was drawn at 0 again, and no record is beyond the ones before
    std::int64_t first = 0;    // the first step that it showed then
    double epoch = missing;    // of the last record then
    std::int64_t last = 0;     // of a record since, or the one in front of `first`
  };
  struct LossBar {
    double epoch = missing;  // of its first line
    std::int64_t last_batch = -1;
    std::int64_t last_total = 0;
    std::int64_t steps_before = 0;  // of the bars before it
    bool starts_with_loss = false;  // at 0/N
    double loss = missing;          // as shown last
    double val_loss = missing;
  };
  struct HeldBar {
    PrintedStep step;
    StepLine line;
  };

  // The step of the last record; 0: this one is the first.
  std::int64_t last_record(const RunProgress& run, bool is_same_run) const {
    return !is_same_run ? 0 : bar_.starts_over ? bar_.last : run.last_step;
  }
  void number(const StepLine& line, const RunProgress& run, bool new_block, Counted& counted);
  std::int64_t exact_step(const StepLine& line, const RunProgress& run, bool new_block) const;
  void number_iteration(const StepLine& line, Counted& counted) const;
  void number_within_epoch(const StepLine& line, const RunProgress& run, bool new_block, Counted& counted);
  void number_bar(const StepLine& line, bool new_block, Counted& counted);
  void hold_unfinished(const StepLine& line, Counted& counted);
  void number_record(const StepLine& line, const RunProgress& run, bool new_block, Counted& counted);
  void time_by_bar(Counted& counted);

  double epoch_ = missing;  // as printed last
  double offset_epoch_ = missing;
  std::int64_t epoch_offset_ = 0;  // steps of earlier epochs, if each counts from the start
  std::int64_t raw_step_ = -1;     // as printed
  std::int64_t step_gap_ = 1;
  std::int64_t placed_ = -1;
  double record_epoch_ = missing;  // of the last record
  struct Iteration {
    std::int64_t number = 0;
    std::int64_t step = 0;
  } iteration_;  // the last one that was printed beside its step; 0: none
  TrainerBar bar_;
  LossBar loss_bar_;
  std::optional<HeldBar> held_;
  bool records_are_epochs_ = false;
  double repeated_val_loss_ = missing;
  StepLine timed_;  // a record with its bar's time, or the line of a held bar
};

}  // namespace stepladder
