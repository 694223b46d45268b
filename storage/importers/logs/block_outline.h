// Names a block of steps from the words around it, and detects where a new block begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/importers/importer.h"
#include "storage/importers/logs/lines/log_lines.h"
#include "storage/importers/logs/lines/log_words.h"
#include "storage/importers/logs/printed_step.h"

namespace stepladder {

struct KnownStage;

struct BlockName {
  std::string stage;  // empty: the words give no name
  std::string title;
  std::string precision;  // "bf16", if the name contains it
};

class BlockOutline {
 public:
  // The stages whose names are headings; they outlive it. Null: none.
  explicit BlockOutline(const std::vector<KnownStage>* known_stages) : known_stages_(known_stages) {}

  // Whether there were words since the last step: any, and words that begin a new block.
  bool has_words() const { return weak_; }
  bool new_block() const { return strong_; }

  void fence(LogLine::Place place);
  void table_header() { strong_ = true; }
  void any_words() { weak_ = true; }
  void heading(std::string_view words);
  // A configuration as source code sets it: headings between its lines are comments, if there are several.
  void assignment(bool is_commented_out);
  bool assigns() const { return assigns_; }
  void code(std::string_view text);
  // Reads a rule or source code, which names nothing and may end the words before it. False if the text is neither.
  bool separate(std::string_view text, LogLine::Place place);
  // Reads words that are neither a heading nor a list entry. `is_fact`: they state a fact, so they name nothing.
  void words(std::string_view text, LogLine::Place place, bool is_fact);
  void resume() { resumes_ = true; }
  bool resumes() const { return resumes_; }  // since the last step

  // Whether this list entry ends the previous one; an entry below it doesn't.
  bool leaves_item(const Item& next) const { return item_.text.empty() || next.indent <= item_.indent; }
  void enter_item(const Item& item);
  // Ends the entry, if any. An entry without steps, after others with steps, is still a rung: somebody tried it, and
  // its words describe the result.
  std::optional<BlockName> leave_item();

  // Whether this step begins a new run. Steps that start over do at the start of a new block; elsewhere the run was
  // resumed.
  bool begins_run(std::int64_t step, const RunProgress& run) const;
  void begin_run();
  bool in_item_without_steps() const { return !item_.text.empty() && !item_.has_steps; }
  BlockName name() const;

  // A step was read, so earlier words no longer apply.
  void step();

 private:
  void forget_texts();

  const std::vector<KnownStage>* known_stages_;
  std::string heading_;
  std::string paragraph_;
  std::string code_;
  bool fenced_ = false;            // a fence was opened since the last step
  bool strong_ = false;            // a heading, a fence: a new block
  bool weak_ = false;              // any words
  bool resumes_ = false;           // words about resuming
  bool assigns_ = false;           // a setting was assigned since the last step
  bool heads_assignment_ = false;  // ... and behind it was a heading
  int comments_ = 0;               // such headings in front of another assignment
  struct ListItem {
    std::string text;
    std::string child;
    std::size_t indent = 0;
    bool has_steps = false;
  };
  ListItem item_;  // that the block is under; empty: none
  int items_with_steps_ = 0;
};

// The facts about all runs of a log together: the notes above the first, and which run is the baseline.

class LadderOutline {
 public:
  explicit LadderOutline(std::string name) : name_(std::move(name)) {}

  // Reads the order of the runs, which words anywhere in the log may state.
  void read_order(std::string_view text);
  // Adds words that precede the first run.
  void add_note(std::string_view text);
  void add_run(const std::string& stage) { stages_.push_back(stage); }

  bool empty() const { return stages_.empty(); }

  // Reports the ladder to the sink if there are several runs; those that nothing names, or that are phases of one
  // training, are in none.
  void report(ImportSink& sink) const;

 private:
  bool newest_first() const;
  std::string why_apart() const;  // why the runs aren't rungs of one ladder; empty if they are

  std::string name_;
  std::string notes_;
  std::vector<std::string> stages_;  // of the runs so far
  bool says_newest_first_ = false;
};

}  // namespace stepladder
