// Remembers headings, list entries, fences and paragraphs until the next step, and names the block after the most
// specific of them. begins_run decides whether that step starts a new run or resumes one; it is the rule to test
// against real notes when it changes.
#include "storage/importers/logs/block_outline.h"

#include <algorithm>
#include <array>
#include <utility>

#include "storage/analysis/known_stage.h"
#include "storage/importers/text.h"

namespace stepladder {
namespace {

constexpr std::size_t longest_title = 160;

// Whether the words are a title that somebody wrote above a block: "TF32", "Flash attention".
bool is_plain_heading(const std::string& words, const std::vector<KnownStage>* stages) {
  constexpr std::size_t longest = 40;
  return stages && words.size() <= longest && words.find(':') == std::string::npos &&
         !known_stage({.title = words, .source = "import"}, *stages).empty();
}

std::string cleaned(std::string words) {
  words.erase(std::remove(words.begin(), words.end(), '`'), words.end());
  return shortened(trimmed(words, " \t#*:"), longest_title);
}

// "Speed-up 2: bf16" is a name and a title.
BlockName named(std::string_view words) {
  const std::size_t colon = words.find(':');
  if (colon == std::string_view::npos || colon < 2 || colon >= 48) return {cleaned(std::string(words)), "", ""};
  return {cleaned(std::string(words.substr(0, colon))), cleaned(std::string(words.substr(colon + 1))), ""};
}

// An entry below another is named after both.
void add_child(BlockName& name, const std::string& child) {
  std::string own = child.substr(0, child.find(" ("));
  own.erase(std::remove_if(own.begin(), own.end(), [](char c) { return c == '`' || c == '\''; }), own.end());
  name.title = (name.title.empty() ? "" : name.title + ", ") + child;
  name.stage += ", " + own;
}

// Whether one of the settings in a list is "fp32": "fp32 master weights" are no precision of the step.
bool sets_fp32(std::string_view words) {
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t end = std::min(words.find_first_of(",;:()`", at), words.size());
    std::string_view setting = words.substr(at, end - at);
    while (setting.starts_with(' ')) setting.remove_prefix(1);
    while (setting.ends_with(' ')) setting.remove_suffix(1);
    for (const std::string_view fp32 : {"fp32", "FP32", "float32", "fp32 baseline", "FP32 baseline"})
      if (setting == fp32) return true;
    at = end + 1;
  }
  return false;
}

std::string_view precision_in(std::string_view words) {
  if (contains_word(words, "bf16") || contains_word(words, "bfloat16")) return "bf16";
  if (contains_word(words, "tf32")) return "tf32";
  return sets_fp32(words) ? "fp32" : "";
}

}  // namespace

BlockName BlockOutline::name() const {
  BlockName name;
  std::string described = !paragraph_.empty() ? paragraph_ : code_;
  if (!item_.text.empty()) {
    name = named(item_.text);
    if (!item_.child.empty()) add_child(name, cleaned(item_.child));
  } else if (!heading_.empty()) {
    name = named(heading_);
  } else if ((fenced_ && !paragraph_.empty()) || is_plain_heading(paragraph_, known_stages_)) {
    name.stage = cleaned(paragraph_);
    described.clear();
  } else {
    return name;
  }
  if (name.title.empty()) name.title = cleaned(described);
  if (name.title.empty()) name.title = name.stage;
  name.precision = precision_in(name.stage + ": " + name.title);
  return name;
}

std::optional<BlockName> BlockOutline::leave_item() {
  std::optional<BlockName> tried;
  if (!item_.text.empty() && !item_.has_steps && items_with_steps_ >= 2) {
    item_.child.clear();
    tried = name();
    if (!paragraph_.empty() && tried->title.find(paragraph_) == std::string::npos)
      tried->title =
          shortened(tried->title == tried->stage ? paragraph_ : tried->title + ": " + paragraph_, longest_title);
  }
  item_ = {};
  forget_texts();
  return tried;
}

void BlockOutline::enter_item(const Item& item) {
  if (leaves_item(item))
    item_ = {.text = std::string(item.text), .child = {}, .indent = item.indent, .has_steps = false};
  else
    item_.child = item.text;
  strong_ = weak_ = true;
  paragraph_.clear();
  code_.clear();
}

void BlockOutline::fence(LogLine::Place place) {
  strong_ |= place != LogLine::Place::outside;
  fenced_ |= place == LogLine::Place::fenced;
}

void BlockOutline::heading(std::string_view words) {
  heading_ = words;
  paragraph_.clear();
  strong_ = weak_ = true;
  heads_assignment_ = assigns_;
}

void BlockOutline::assignment(bool is_commented_out) {
  if (std::exchange(heads_assignment_, false)) ++comments_;
  if (comments_ > 1 || is_commented_out) heading_.clear();
  assigns_ = true;
}

void BlockOutline::code(std::string_view text) {
  if (code_.size() < longest_title) code_ += (code_.empty() ? "" : " ") + std::string(text);
}

bool BlockOutline::separate(std::string_view text, LogLine::Place place) {
  constexpr std::size_t long_rule = 50;
  const bool rule = std::ranges::none_of(text, [](char c) { return is_letter(c) || is_digit(c); });
  const bool code = !rule && place == LogLine::Place::outside && is_code_line(text);
  if (code || (rule && text.size() >= long_rule && text.front() == '=')) forget_texts();
  return rule || code;
}

void BlockOutline::words(std::string_view text, LogLine::Place place, bool is_fact) {
  if (is_fact) return;
  if (place == LogLine::Place::outside) {
    if (paragraph_.size() < longest_title) paragraph_ += (paragraph_.empty() ? "" : " ") + std::string(text);
  } else if (paragraph_.empty() && !item_.text.empty() && !item_.has_steps) {
    paragraph_ = text;
  }
}

bool BlockOutline::begins_run(std::int64_t step, const RunProgress& run) const {
  if (!run.open) return true;
  if (step > run.last_step) return strong_ && !heading_.empty() && step <= run.first_step;
  if (strong_ && !resumes_) return step < run.last_step || run.steps == 1;
  return weak_ && step <= run.first_step && step < run.last_step && !resumes_;
}

void BlockOutline::begin_run() {
  if (!item_.text.empty() && !std::exchange(item_.has_steps, true)) ++items_with_steps_;
}

void BlockOutline::step() {
  strong_ = weak_ = resumes_ = fenced_ = assigns_ = heads_assignment_ = false;
  comments_ = 0;
  forget_texts();
}

void BlockOutline::forget_texts() {
  heading_.clear();
  paragraph_.clear();
  code_.clear();
}

void LadderOutline::read_order(std::string_view text) {
  if (contains_word(text, "chronological") || contains_word(text, "newest first") ||
      (contains_word(text, "most recent") && contains_word(text, "first")))
    says_newest_first_ |=
        contains_word(text, "opposite") || contains_word(text, "reverse") || contains_word(text, "first");
}

void LadderOutline::add_note(std::string_view text) {
  constexpr std::size_t longest = 4000;
  if (notes_.size() < longest) notes_.append(text).append("\n");
}

bool LadderOutline::newest_first() const {
  if (says_newest_first_) return true;
  return stages_.size() > 1 && contains_word(stages_.back(), "baseline") && !contains_word(stages_.front(), "baseline");
}

std::string LadderOutline::why_apart() const {
  if (std::ranges::all_of(stages_, &std::string::empty)) return "have no names, and may be phases on other data";
  constexpr std::array phases{"pretraining", "pretrain", "midtraining", "mid",  "sft", "finetuning",
                              "finetune",    "dpo",      "rl",          "rlhf", "grpo"};
  const auto is_named = [&](const char* phase) {
    return std::ranges::any_of(stages_, [&](const std::string& stage) { return contains_word(stage, phase); });
  };
  return std::ranges::count_if(phases, is_named) > 1 ? "are phases of one training" : "";
}

void LadderOutline::report(ImportSink& sink) const {
  if (stages_.size() < 2) return;
  if (const std::string why = why_apart(); !why.empty())
    return sink.note(0, "its " + std::to_string(stages_.size()) + " trainings " + why + ", so they are in no ladder");
  const bool turned = newest_first();
  std::vector<int> rungs;
  for (std::size_t i = 0; i < stages_.size(); ++i)
    rungs.push_back(static_cast<int>(turned ? stages_.size() - 1 - i : i));
  if (turned) sink.note(0, "the log has its newest block first, so the ladder begins with its last");
  sink.ladder({.name = name_, .notes = notes_}, rungs);
}

}  // namespace stepladder
