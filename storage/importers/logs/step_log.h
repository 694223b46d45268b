// Reads one log: a pipeline from bytes to runs, in which each part depends only on its input.
//
//   LogLines --words--> SpokenFacts, BlockOutline, LadderOutline: what the next run is, and whether it begins
//            --steps--> StepCounter: the step's number
//                       RunAssembler: StepMerger -> UnitInference -> StepClock --> sink
//
// StepLog passes each line on. A part gets the state of a later one (how far the run has been read) as a value,
// RunProgress.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/importers/importer.h"
#include "storage/importers/logs/block_outline.h"
#include "storage/importers/logs/early_end.h"
#include "storage/importers/logs/lines/log_lines.h"
#include "storage/importers/logs/lines/step_line.h"
#include "storage/importers/logs/log_facts.h"
#include "storage/importers/logs/run_assembler.h"
#include "storage/importers/logs/step_counter.h"

namespace stepladder {

class StepLog : public ImportReader {
 public:
  // `options` and `sink` outlive it.
  StepLog(const std::filesystem::path& path, const ImportOptions& options, ImportSink& sink);

  void take(std::string_view bytes) override;
  void finish() override;  // throws ImportError if the log has no step
  void pass_held(ImportSink& sink) const override { run_.end_elsewhere(sink); }

 private:
  void take(const LogLine& line);
  void take_step(const LogLine& line);
  void count_step(const LogLine& line);
  void take_bar(const LogLine& line);
  bool belongs_to_next(const LogLine& line) const;
  void release_records(std::int64_t next_bar = -1);
  void release_early();
  bool begins_run(const Counted& counted) const;
  bool resumes() const { return outline_.resumes() || counter_.resumes(run_.progress()); }
  bool is_new_block() const { return outline_.new_block() || ended_; }
  void take_bare_loss(const LogLine& line);
  void take_record(const LogLine& line);
  void log_texts(const StepLine& line, std::string_view text);
  void log_others(const StepLine& line, std::string_view text, std::int64_t step, double at);
  void read_parts();
  void take_words(const LogLine& line);
  void enter_item(const Item& item, std::int64_t line);
  void leave_item(std::int64_t line);
  void check_shape(std::string_view text, std::int64_t line);
  void add(Counted counted, std::string_view text, std::int64_t line);
  void validate(const StepLine& line, std::int64_t number);
  bool is_main_set(const StepLine& line, std::int64_t number);
  void log_set(const StepLine& line, const MetricPoint& point);
  void begin_run(const StepLine& line, std::string_view text, std::int64_t number);
  void end_run();
  void take_early_end();
  bool take_fraction(const LogLine& line);
  void add_rung_without_steps(const BlockName& name, std::int64_t line);
  bool before_first_run() const { return ladder_.empty() && !run_.progress().open; }

  LogLines lines_;
  SpokenFacts facts_;
  static constexpr std::size_t most_parts = 500;
  std::vector<std::string> parts_;  // before the first run, of an object over several lines
  BlockOutline outline_;
  StepCounter counter_;
  RunAssembler run_;
  LadderOutline ladder_;
  LogFacts step_facts_;          // that the line of the run's first step names
  bool has_step_shape_ = false;  // ... its batch or sequence among them
  ImportSink& sink_;
  EarlyEnd early_end_;                               // what the words behind the last step say
  std::int64_t steps_ = 0;                           // of all runs
  std::int64_t fractions_ = 0, first_fraction_ = 0;  // lines whose step is one, and the first such line
  double early_val_loss_ = missing;                  // printed before the run that it belongs to
  double early_epoch_ = missing;                     // ... with this epoch
  bool is_before_bar_ = false;                       // ... and before the training's bar showed a step
  struct Waiting {
    std::string text;
    std::int64_t number = 0;
    double at = missing;
    LogLine line() const;  // valid as long as this
  };
  std::vector<Waiting> records_;  // behind a bar, until the next one shows their numbers
  std::vector<Waiting> early_;    // evaluations of a step before the run's steps: perhaps of the next run
  bool counts_records_ = false;   // that print no step
  bool ended_ = false;            // a training was over, so the next step from the start is another's
  bool is_complete_ = false;      // ... and the log says that it was complete
  std::int64_t batch_ = 0;        // samples of a step, if its place is counted in samples
  bool has_prose_ = false;        // some words are
  bool is_document_ = false;      // it has headings, lists or blocks: its logs may be excerpts
  bool is_bare_ = true;           // the last step has a loss and nothing else
  double last_epoch_ = missing;   // of a record without a number
  std::string val_set_;           // of the run: the first evaluation set that is named
  bool has_plain_set_ = false;    // ... and a loss of one without a name
  bool has_sets_ = false;         // ... several
  double reported_ = missing;     // tokens/s that words under an item state
  double first_loss_ = missing;   // of the run
  std::int64_t lowest_rank_ = -1;
  std::int64_t total_ = -1;     // that the run's first step printed
  std::string start_of_steps_;  // the first letters of a step's line, to know a broken one by
  std::vector<std::pair<std::string_view, std::string_view>> texts_;  // the same
  std::vector<OtherPair> others_;                                     // of the line; kept for its memory
  CappedNotes warnings_, placed_, malformed_, summaries_;
};

}  // namespace stepladder
