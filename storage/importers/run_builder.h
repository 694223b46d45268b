// Puts the lines of one run together: what belongs to one step, differences of clocks, and the units of what was
// printed. Looks at the first steps before it tells any, so that they are told in the right units.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/importers/importer.h"
#include "storage/importers/log_facts.h"
#include "storage/importers/step_line.h"

namespace stepladder {

// One line's part of a step, with the step's number settled.
struct PrintedStep {
  std::int64_t step = 0;
  std::int64_t line = 0;
  double loss = missing;
  double val_loss = missing;
  double time = missing;
  double elapsed = missing;
  double mean_time = missing;
  double throughput = missing;
  double lr = missing;
  double grad_norm = missing;
  double tokens = missing;
  double batch_size = missing;
  double at = missing;
  bool estimate = false;  // its loss is one of an evaluation: a step's own counts more
  bool redrawn = false;   // from a progress bar: what comes later is what the step came to
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

  // A validation loss that came without a step's number: the last step's, or the first one's where none was yet.
  void validate(double val_loss, std::int64_t line);

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
  bool time_is_a_clock() const;

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
  std::int64_t tokens_per_step_ = 0;
  std::string unit_;
  double last_clock_ = missing;
  std::int64_t last_clock_step_ = 0;
  bool clock_restart_noted_ = false;
  bool rate_time_noted_ = false;
  bool timed_ = false;
};

}  // namespace stepladder
