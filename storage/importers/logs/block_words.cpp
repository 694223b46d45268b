// What the words around a block of steps call it, and whether something new begins.
#include <algorithm>
#include <utility>

#include "storage/analysis/known_stage.h"
#include "storage/importers/logs/log_words.h"
#include "storage/importers/logs/step_log.h"
#include "storage/importers/text.h"

namespace stepladder {
namespace {

constexpr std::size_t longest_title = 160;
constexpr std::size_t longest_notes = 4000;

// "TF32", "Flash attention": a line of its own that somebody wrote above a block, by what it says.
bool is_plain_heading(const std::string& words) {
  constexpr std::size_t longest = 40;
  return words.size() <= longest && words.find(':') == std::string::npos &&
         !known_stage({.title = words, .source = "import"}).empty();
}

}  // namespace

// What the words in front of a block call it, and what they say of it.
void StepLog::name_block(Run& run) {
  const auto clean = [](std::string words) {
    words.erase(std::remove(words.begin(), words.end(), '`'), words.end());
    return shortened(trimmed(words, " \t#*:"), longest_title);
  };
  const auto named = [&](std::string_view words) {
    const std::size_t colon = words.find(':');
    const bool short_name = colon != std::string_view::npos && colon > 1 && colon < 48;
    run.stage = clean(std::string(short_name ? words.substr(0, colon) : words));
    if (short_name) run.title = clean(std::string(words.substr(colon + 1)));
  };
  std::string described = !paragraph_.empty() ? paragraph_ : code_;
  if (!item_.empty()) {
    named(item_);
    if (!child_.empty()) {
      const std::string parent = run.stage;
      const std::string child = clean(child_);
      std::size_t cut = child.find(" (");
      std::string name = child.substr(0, cut);
      name.erase(std::remove_if(name.begin(), name.end(), [](char c) { return c == '`' || c == '\''; }), name.end());
      run.title = (run.title.empty() ? "" : run.title + ", ") + child;
      run.stage = parent + ", " + name;
    }
  } else if (!heading_.empty()) {
    named(heading_);
  } else if (fenced_before_step_ && !paragraph_.empty()) {
    run.stage = clean(paragraph_);
    described.clear();
  } else if (is_plain_heading(paragraph_)) {
    run.stage = clean(paragraph_);
    described.clear();
  } else {
    return;
  }
  if (run.title.empty()) run.title = clean(described);
  if (run.title.empty()) run.title = run.stage;
  run.changed = run.title;
  // Precision, where the words that say what was changed name one and no line sets it.
  if (facts_.precision.empty()) {
    const std::string words = run.stage + " " + run.title;
    if (contains_word(words, "bf16") || contains_word(words, "bfloat16"))
      facts_.precision = "bf16";
    else if (contains_word(words, "tf32"))
      facts_.precision = "tf32";
  }
}

// An entry of a list of rungs that holds no steps is a rung all the same: it was tried, and its words say what came.
void StepLog::leave_item() {
  if (!item_.empty() && !item_has_steps_ && items_with_steps_ >= 2) {
    end_run();
    child_.clear();
    Run run;
    name_block(run);
    if (!paragraph_.empty() && run.title.find(paragraph_) == std::string::npos)
      run.title = shortened(run.title == run.stage ? paragraph_ : run.title + ": " + paragraph_, longest_title);
    run.changed = run.title;
    run.hardware = facts_.hardware.empty() ? hardware_ : facts_.hardware;
    run.recipe = LogFacts{}.recipe_json("notes");
    sink_.begin_run(run);
    run.printed.unit = "none printed";
    sink_.end_run(run);
    sink_.note(number_, "'" + run.stage + "' has no steps; kept as a rung without figures: " + run.title);
    ++runs_;
    stages_.push_back(run.stage);
  }
  item_.clear();
  child_.clear();
  item_has_steps_ = false;
  forget_texts();
}

void StepLog::forget_texts() {
  heading_.clear();
  paragraph_.clear();
  code_.clear();
}

void StepLog::take_text(std::string_view line) {
  const std::string_view text = trimmed(line);
  if (text.empty()) return;
  // After so many lines of anything else only a heading or an entry of a list begins something new.
  if (facts_left_ <= 0) {
    weak_ = true;
    if (heading_of(line).empty() && !item_of(line)) return;
  }
  if (is_warning(line)) {
    note_some(warnings_, "skipped: a warning of a compiler or library");
    return;
  }
  if (builder_.progress().open && !start_of_steps_.empty() && text.starts_with(start_of_steps_) && !weak_ &&
      !in_code_ && block_number_ == 0)
    note_some(malformed_, "not read as a step: " + shortened(text, 80));

  --facts_left_;
  const bool is_fact = facts_.read(line);
  if (runs_ == 0 && !builder_.progress().open && !facts_.hardware.empty()) hardware_ = facts_.hardware;
  resumes_ |= speaks_of_resuming(text);

  if (in_code_) {
    if (code_.size() < longest_title) code_ += (code_.empty() ? "" : " ") + std::string(text);
    return;
  }
  if (contains_word(text, "chronological") || contains_word(text, "newest first") ||
      (contains_word(text, "most recent") && contains_word(text, "first")))
    says_newest_first_ |=
        contains_word(text, "opposite") || contains_word(text, "reverse") || contains_word(text, "first");

  if (const auto item = item_of(line); item && !in_fence_) {
    if (item->text.starts_with("![")) return;  // a picture
    if (item_.empty() || item->indent <= item_indent_) {
      leave_item();
      item_ = item->text;
      item_indent_ = item->indent;
      item_has_steps_ = false;
    } else {
      child_ = item->text;
    }
    strong_ = weak_ = true;
    paragraph_.clear();
    code_.clear();
    facts_left_ = std::max(facts_left_, 1000);
    return;
  }
  if (const std::string_view words = heading_of(line); !words.empty()) {
    heading_ = words;
    if (!builder_.progress().open && runs_ == 0 && notes_.size() < longest_notes) notes_ += heading_ + "\n";
    paragraph_.clear();
    strong_ = weak_ = true;
    facts_left_ = std::max(facts_left_, 1000);
    return;
  }
  weak_ = true;
  const bool is_rule = std::none_of(text.begin(), text.end(), [](char c) { return is_letter(c) || is_digit(c); });
  if (is_rule) {
    // A long rule ends what came before it, source code for one.
    if (text.size() >= 50 && text[0] == '=') forget_texts();
    return;
  }
  if (is_code_line(line) && !in_fence_) {
    forget_texts();
    return;
  }
  if (!builder_.progress().open && runs_ == 0 && !is_fact && notes_.size() < longest_notes)
    notes_ += std::string(text) + "\n";
  if (!is_fact && paragraph_.size() < longest_title && !in_fence_)
    paragraph_ += (paragraph_.empty() ? "" : " ") + std::string(text);
  else if (in_fence_ && !is_fact && paragraph_.empty() && !item_.empty() && !item_has_steps_)
    paragraph_ = text;
}

bool StepLog::newest_first() const {
  if (says_newest_first_) return true;
  return stages_.size() > 1 && contains_word(stages_.back(), "baseline") && !contains_word(stages_.front(), "baseline");
}

}  // namespace stepladder
