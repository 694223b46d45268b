// What the words around a block of steps call it, and whether a new block begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/importers/logs/lines/log_lines.h"
#include "storage/importers/logs/lines/log_words.h"
#include "storage/importers/logs/printed_step.h"

namespace stepladder {

struct KnownStage;

struct BlockName {
  std::string stage;  // empty: the words give no name
  std::string title;
  std::string precision;  // "bf16", where the name says so
};

class BlockOutline {
 public:
  // The stages whose names are headings; they outlive it. Null: no name is.
  explicit BlockOutline(const std::vector<KnownStage>* known_stages) : known_stages_(known_stages) {}

  // Words came since the last step: any, and such that a new block begins.
  bool has_words() const { return weak_; }
  bool new_block() const { return strong_; }

  void fence(LogLine::Place place);
  void table_header() { strong_ = true; }
  void any_words() { weak_ = true; }
  void heading(std::string_view words);
  void code(std::string_view text);
  // A rule or source code names nothing, and may end what was said before it. False where the text is neither.
  bool separate(std::string_view text, LogLine::Place place);
  // Words that are neither a heading nor an entry of a list. `is_fact`: they say a fact, so they name nothing.
  void words(std::string_view text, LogLine::Place place, bool is_fact);
  void resume() { resumes_ = true; }

  // An entry of a list. The one before it is left, unless this one is below it.
  bool leaves_item(const Item& next) const { return item_.text.empty() || next.indent <= item_.indent; }
  void enter_item(const Item& item);
  // Leaves the entry, if any. One without steps, after others that have some, is a rung all the same: it was tried, and
  // its words say how that ended.
  std::optional<BlockName> leave_item();

  // Whether this step begins a new run. Steps that start over do where a new block begins; else the run was resumed.
  bool begins_run(std::int64_t step, const RunProgress& run) const;
  void begin_run();
  BlockName name() const;

  // A step was read: what was said before it is done with.
  void step();

 private:
  void forget_texts();

  const std::vector<KnownStage>* known_stages_;
  std::string heading_;
  std::string paragraph_;
  std::string code_;
  bool fenced_ = false;   // a fence was opened since the last step
  bool strong_ = false;   // a heading, a fence: a new block
  bool weak_ = false;     // any words
  bool resumes_ = false;  // words of going on
  struct ListItem {
    std::string text;
    std::string child;
    std::size_t indent = 0;
    bool has_steps = false;
  };
  ListItem item_;  // that the block is under; empty: under none
  int items_with_steps_ = 0;
};

}  // namespace stepladder
