// One log that is being read: its lines become steps (step_log.cpp), steps get their numbers (step_counting.cpp), and
// the words between them say what a block of steps is (block_words.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/importers/importer.h"
#include "storage/importers/logs/line_joiner.h"
#include "storage/importers/logs/line_layout.h"
#include "storage/importers/logs/line_reader.h"
#include "storage/importers/logs/log_facts.h"
#include "storage/importers/logs/run_assembler.h"
#include "storage/importers/logs/step_line.h"
#include "storage/importers/logs/time_stamp.h"

namespace stepladder {

class StepLog {
 public:
  StepLog(ImportInput& input, const ImportOptions& options, ImportSink& sink)
      : reader_(input, sink), sink_(sink), builder_(options, sink), stem_(input.path().stem().string()) {}

  // Tells the sink everything; throws ImportError where there is no step.
  void read();

 private:
  static constexpr int lines_read_for_facts = 20000;  // of each run: what it is has been said by then

  void take(std::string_view line);
  void take_list(std::string_view line, int wanted);
  void take_joined();
  void take_line(std::string_view line);
  bool in_literal(std::string_view line);
  bool take_fence(std::string_view line);
  bool take_step(std::string_view line);
  bool take_read(std::string_view text, const ReadLine& read);
  void take_text(std::string_view line);
  bool settle_step(const StepLine& line, PrintedStep& printed);
  bool settle_bar(const StepLine& line, PrintedStep& printed);
  bool settle_record(const StepLine& line, PrintedStep& printed);
  void record(std::string_view text, const StepLine& line, PrintedStep printed);
  bool take_bare_loss(std::string_view text, const StepLine& line);
  void validate(const StepLine& line);
  void take_held_bar();
  bool begins_run(std::int64_t step) const;
  void begin_run(std::string_view text, const StepLine& line, std::int64_t step);
  void end_run();
  void name_block(Run& run);
  void leave_item();
  void forget_texts();
  void tell_ladder();
  bool newest_first() const;
  void note_some(int& count, std::string text);
  void say_counts();

  LineReader reader_;
  LineJoiner joiner_;
  LineLayouts layouts_;
  TimeStamp stamp_;
  std::int64_t number_ = 0;        // of the line that is being read, or on which what was joined began
  std::int64_t block_number_ = 0;  // of the line that opened the block
  ImportSink& sink_;
  RunAssembler builder_;
  const std::string stem_;

  int runs_ = 0;
  std::vector<std::string> stages_;  // of the runs so far

  // What has been said since the last step.
  std::string heading_;
  std::string paragraph_;
  std::string code_;
  LogFacts facts_;
  bool strong_ = false;   // a heading, a fence: a new block
  bool weak_ = false;     // any words
  bool resumes_ = false;  // words of going on
  int facts_left_ = lines_read_for_facts;
  std::string hardware_;  // said anywhere before

  // The list that the blocks stand in, where they do.
  std::string item_;
  std::string child_;
  std::size_t item_indent_ = 0;
  bool item_has_steps_ = false;
  int items_with_steps_ = 0;

  int literal_left_ = 0;  // lines that may still belong to a script's data
  bool in_fence_ = false;
  bool in_code_ = false;
  bool fenced_before_step_ = false;
  std::string notes_;  // of the whole file
  bool says_newest_first_ = false;

  // How steps are counted.
  double epoch_ = missing;  // as said last
  double first_epoch_ = missing;
  std::int64_t epoch_offset_ = 0;
  double offset_epoch_ = missing;
  std::int64_t raw_step_ = -1;
  std::int64_t step_gap_ = 1;
  std::int64_t last_batch_ = -1;
  std::int64_t implied_epoch_ = 0;
  std::int64_t bar_step_ = -1;
  std::int64_t bar_total_ = -1;
  double bar_rate_ = missing;  // "1.95it/s"
  double bar_time_ = missing;  // "1.20s/it"
  bool bar_starts_with_loss_ = false;
  bool bar_follows_ = false;  // the bar behind a dictionary counts it, not the one in front
  double bar_val_loss_ = missing;
  std::optional<PrintedStep> held_bar_;
  StepLine held_line_;
  double repeated_val_loss_ = missing;
  double early_val_loss_ = missing;
  bool early_val_noted_ = false;
  bool records_are_epochs_ = false;

  std::string start_of_steps_;  // the first letters of a step's line, to know a broken one by
  int warnings_ = 0;
  int malformed_ = 0;
  int summaries_ = 0;
};

}  // namespace stepladder
