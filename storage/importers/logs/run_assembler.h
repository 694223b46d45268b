// Assembles one run for the sink: it merges its steps, holds them back until their units are settled, then passes them
// on in milliseconds and tokens.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/importers/constant_values.h"
#include "storage/importers/importer.h"
#include "storage/importers/logs/log_facts.h"
#include "storage/importers/logs/other_figures.h"
#include "storage/importers/logs/step_clock.h"
#include "storage/importers/logs/step_merger.h"
#include "storage/importers/logs/unit_inference.h"

namespace stepladder {

// The facts known about a run before its first step.
struct RunOpening {
  Run run;
  LogFacts facts;
  std::string family;          // of programs that print such a log
  bool step_is_epoch = false;  // a step is a whole epoch
};

class RunAssembler {
 public:
  // Both outlive it.
  RunAssembler(const ImportOptions& options, ImportSink& sink);

  // Begins a new run and ends the previous one.
  void begin(RunOpening opening);

  void add(const PrintedStep& printed);
  // The same with the line's labels, in whose units the values are.
  void add(const StepLine& line, PrintedStep&& printed);
  // Labels that apply to all lines, as in a table's header.
  void label(const StepLine& labels) { labels_.read(labels); }

  // What the perplexity beside a loss says about its unit.
  void weigh_loss(const StepLine& line);
  // A number of the log that no step has a field for.
  void log(std::string_view name, std::string_view unit, const MetricPoint& point);
  // The steps' own lines show that the batch size or sequence length changes: neither is that of the run.
  void forget_shape(std::int64_t line);

  // The figures beside the step time in a step's line; the total time of the training, where a line names one.
  void read_figures(std::string_view line, std::int64_t step) { other_figures_.read_step(line, step); }
  void read_total(std::string_view line) { other_figures_.read_total(line); }

  // Times on a line that no step time was read from, as printed.
  void keep_unread_times(std::string times, std::int64_t line);
  bool has_unread_times() const { return unread_line_ > 0; }
  // Whether no step so far has a loss or a time: the run has only other numbers.
  bool has_only_others() const { return open_ && !measured_; }

  // A text of a step. One that never changes describes the run, as a constant number does.
  void log_text(std::string_view name, std::string_view text) { texts_.add(name, text); }

  // What was read as an epoch is a part of one.
  void count_parts_of_epochs() { opening_.step_is_epoch = false; }

  // The run did not reach its end; `reason` says why.
  void end_early(RunStatus status, const std::string& reason) {
    opening_.run.status = status;
    opening_.run.reason = reason;
  }

  // See StepMerger.
  void validate(double val_loss, bool tested, std::int64_t line);
  void validates_untrained() { steps_.validates_untrained(); }
  void complete_last(double loss) { steps_.complete_last(loss); }
  void renumber_first(std::int64_t step);

  // Ends the input: passes the steps still held back to the sink.
  void end();
  // Passes on the same to another sink, and continues as if it had not.
  void end_elsewhere(ImportSink& sink) const;

  RunProgress progress() const;
  const std::string& stage() const { return opening_.run.stage; }

 private:
  void infer_units();
  void pass_on(std::size_t keep);
  void begin_run();
  void pass_on_logged();
  std::string recipe() const;
  void keep_rate(const PrintedStep& step);
  PrintedUnits printed_units() const;

  const ImportOptions* options_;
  ImportSink* sink_;
  bool open_ = false;
  RunOpening opening_;
  ConstantNumber lr_, batch_size_;
  ConstantTexts texts_;
  StepLabels labels_;
  OtherFigures other_figures_;
  StepMerger steps_;
  std::optional<StepClock> clock_;  // set once the units are settled; steps are then passed on at once
  struct Logged {
    Metric metric;
    std::vector<MetricPoint> points;
    ConstantNumber constant;
  };
  std::map<std::string, Logged, std::less<>> logged_;  // not yet passed on
  std::size_t points_ = 0;                             // in it
  bool measured_ = false;
  bool metrics_noted_ = false;  // that there are too many
  bool is_rate_kept_ = false;
  bool begun_ = false;  // the sink knows of the run
  bool perplexity_noted_ = false;
  bool says_bits_ = false, says_nats_ = false;  // some line (weigh_loss)
  bool in_bits_ = false;                        // the losses are
  bool parts_noted_ = false;
  std::string unread_times_;
  std::int64_t unread_line_ = 0;
  CappedNotes late_;
};

}  // namespace stepladder
