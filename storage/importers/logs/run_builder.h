// Puts the lines of one run together: what belongs to one step, differences of clocks, and the units of what was
// printed. Looks at the first steps before it tells any, so that they are told in the right units.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/importers/importer.h"
#include "storage/importers/logs/log_facts.h"
#include "storage/importers/logs/step_line.h"

namespace stepladder {

struct UnitEvidence;

// One line's part of a step, with the step's number settled.
struct PrintedStep : StepValues {
  PrintedStep() = default;
  explicit PrintedStep(const StepValues& values) : StepValues(values) {}
  std::int64_t step = 0;
  std::int64_t line = 0;
  std::int64_t rank = -1;  // of the process that printed it
  double at = missing;     // unix seconds, from a time stamp in front
  bool estimate = false;   // its loss is one of an evaluation: a step's own counts more
  bool redrawn = false;    // from a progress bar: what comes later is what the step came to
};

class RunBuilder {
 public:
  // Both outlive the builder.
  RunBuilder(const ImportOptions& options, ImportSink& sink) : options_(&options), sink_(&sink) {}

  // A new run from here on. `epochs`: a step is a whole epoch.
  void begin(Run run, LogFacts facts, std::string family);
  bool open() const { return open_; }

  // The labels of the lines; the first that says something counts.
  void labels(const StepLine& line);

  void add(const PrintedStep& printed);
  // The same with its labels: where they differ from the first ones', the values are turned into the first one's unit.
  void add(const StepLine& labelled, PrintedStep printed);

  // A validation loss that came without a step's number: the last step's, or the first one's where none was yet.
  // `tested`: that of a test set, which counts where there is none of a validation set.
  void validate(double val_loss, bool tested, std::int64_t line);

  // A loss that came without a step's number; false where the last step has one.
  bool complete(double loss);
  // The only step so far has this number; false where there are more, or it was not counted from nothing.
  bool renumber_first(std::int64_t step);
  bool lacks_loss() const { return !pending_.empty() && is_missing(pending_.back().loss); }

  // Nothing more comes; the run is told.
  void end();

  Run& run() { return run_; }
  LogFacts& facts() { return facts_; }
  bool empty() const { return count_ == 0; }
  std::int64_t first_step() const { return first_step_; }
  std::int64_t last_step() const { return last_step_; }
  std::int64_t steps() const { return count_; }

  // What the caller found out about the lines while the run went on.
  std::string family;
  bool step_is_epoch = false;

 private:
  PrintedStep* find(std::int64_t step);
  bool merge(PrintedStep& into, const PrintedStep& printed) const;
  void decide();
  void tell(std::size_t keep);
  void tell(const PrintedStep& printed);
  void settle_tokens();
  void settle_clocks();
  UnitEvidence evidence_of_units(const LogFacts::Tokens& worked_out) const;
  void late(std::int64_t line, const std::string& what);
  bool time_is_a_clock() const;
  bool elapsed_is_a_step() const;
  bool clock_is_coarse() const;
  double stamped_time() const;
  void judge_stamps(double tokens, double printed_rate);

  const ImportOptions* options_;
  ImportSink* sink_;
  Run run_;
  LogFacts facts_;
  bool open_ = false;
  bool told_ = false;     // begin_run was said
  bool decided_ = false;  // units are known, steps are told as they come

  std::vector<PrintedStep> pending_;
  std::size_t attempt_ = 0;  // where in pending_ the steps were last counted from the start again
  std::size_t replay_ = 0;   // where a block that is printed again has got to
  std::int64_t count_ = 0;
  std::int64_t first_step_ = 0;
  std::int64_t last_step_ = 0;
  double early_val_loss_ = missing;

  TimeUnit time_unit_ = TimeUnit::unknown;
  TimeUnit elapsed_unit_ = TimeUnit::unknown;
  RateLabel rate_ = RateLabel::none;
  std::string rate_text_;

  double ms_per_time_ = 1;
  double per_step_ = 1;
  double tokens_rate_to_s_ = 0;  // printed rate x this = tokens/s; 0: it is none of tokens
  bool rate_is_iterations_ = false;
  bool time_is_clock_ = false;
  bool elapsed_is_a_step_ = false;
  bool clock_is_coarse_ = false;
  std::int64_t tokens_per_step_ = 0;
  std::string unit_;
  double last_clock_ = missing;
  std::int64_t last_clock_step_ = 0;
  bool clock_restart_noted_ = false;
  bool rate_time_noted_ = false;
  bool timed_ = false;
  int late_ = 0;                 // lines that came too late for their step
  bool validated_ = false;       // a validation set's loss was printed
  bool rounded_tokens_ = false;  // tokens were printed with few digits
  bool from_perplexity_ = false;
  bool stamps_are_clock_ = false;  // nothing but the time stamps tells how long a step took
  double printed_tokens_per_s_ = missing;
};

}  // namespace stepladder
