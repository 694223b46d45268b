// The log of a training program, or notes with such logs in them: one tolerant reader for all families that print a
// line for a step.
#include "storage/importers/logs/step_log.h"

#include <algorithm>
#include <utility>

#include "storage/importers/logs/log_words.h"
#include "storage/importers/text.h"

namespace stepladder {
namespace {

constexpr std::int64_t largest_step = 1'000'000'000'000'000;
constexpr int longest_literal = 1000;  // lines
constexpr int most_notes_of_a_kind = 20;

}  // namespace

void StepLog::read() {
  std::string_view line;
  while (reader_.next(line)) {
    number_ = reader_.number();
    take(line);
  }
  joiner_.end();
  if (joiner_.ready()) take_joined();
  take_held_bar();
  end_run();
  leave_item();
  if (runs_ == 0) {
    if (!early_val_noted_ && !is_missing(early_val_loss_))
      throw ImportError("holds a validation loss but no training step");
    throw ImportError("holds no training step");
  }
  say_counts();
  if (runs_ > 1) tell_ladder();
}

void StepLog::take(std::string_view line) {
  if (in_code_) return take_line(line);
  if (joiner_.idle()) {
    if (const StepLine* known = layouts_.read(line)) {
      take_read(line, {.line = *known, .says_step = true});
      return;
    }
  }
  const bool taken = joiner_.take(line);
  if (joiner_.ready()) take_joined();
  if (taken) {
    facts_.read(line);
    return;
  }
  // A list of records on one line.
  const bool history = line.starts_with("{") && line.find("\"log_history\"") != std::string_view::npos;
  if (history || line.starts_with("[{")) return take_list(line, history ? 2 : 1);
  // Bars that were redrawn without an end of line between them, and a dictionary behind one.
  while (true) {
    const std::size_t bar = line.find("%|");
    if (bar == std::string_view::npos) break;
    std::size_t cut = line.find("{'", bar);
    if (const std::size_t next = line.find("%|", bar + 2); next < cut) {
      const std::size_t bracket = line.rfind(']', next);
      cut = bracket == std::string_view::npos || bracket < bar ? std::string_view::npos : bracket + 1;
    }
    if (cut == std::string_view::npos) break;
    take_line(line.substr(0, cut));
    line.remove_prefix(cut);
  }
  take_line(line);
}

// The objects of this depth, each as if it stood on a line of its own.
void StepLog::take_list(std::string_view line, int wanted) {
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '{' && ++depth == wanted) start = at;
    if (line[at] == '}' && depth > 0 && depth-- == wanted) take_line(line.substr(start, at + 1 - start));
  }
}

// A step over several lines, or words that looked like the first line of one.
void StepLog::take_joined() {
  const bool bare = block_number_ > 0 && joiner_.bare_block();
  const std::string text = joiner_.take_joined();
  const std::int64_t number = std::exchange(number_, block_number_ > 0 ? block_number_ : number_);
  const ReadLine read = bare ? ReadLine{} : read_step_line(text);
  if (bare)
    take_text(text);
  else if (read.line.has_step() || read.line.batch >= 0 || !is_missing(read.line.epoch))
    take_step(text);
  block_number_ = 0;
  number_ = number;
}

void StepLog::take_line(std::string_view line) {
  if (take_fence(line)) return;
  const bool literal = in_literal(line);
  if (!in_code_ && !literal && may_say_step(line) && take_step(line)) return;
  if (!in_code_ && joiner_.open_table(line)) {
    if (builder_.progress().open) strong_ = true;
    return;
  }
  take_text(line);
}

// "history = [" of a script: what follows in braces is its data, not what a program printed.
bool StepLog::in_literal(std::string_view line) {
  const std::string_view text = trimmed(line);
  if (text.empty()) return literal_left_ > 0;
  const char last = text.back(), first = text.front();
  if (text.size() > 3 && (last == '[' || last == '(' || last == '{') && first != '"')
    literal_left_ = longest_literal;
  else if (literal_left_ > 0 && (first == ']' || first == ')' || first == '}' || --literal_left_ == 0))
    literal_left_ = 0;
  return literal_left_ > 0 && (first == '{' || first == '[' || first == '(' || first == '"' || first == '\'');
}

// ``` opens and closes a block of a document; one that names a language holds code.
bool StepLog::take_fence(std::string_view line) {
  if (line.size() < 3 || line.size() > 80) return false;
  const std::string_view text = trimmed(line);
  if (!text.starts_with("```")) return false;
  in_fence_ = !in_fence_;
  const std::string_view language = trimmed(text.substr(3));
  in_code_ = in_fence_ && !language.empty() && language != "text" && language != "log" && language != "console" &&
             language != "output" && language != "txt" && language != "bash";
  if (in_fence_) strong_ = true;
  fenced_before_step_ |= in_fence_ && !in_code_;
  facts_left_ = std::max(facts_left_, 1000);
  return true;
}

bool StepLog::take_step(std::string_view text) {
  ReadTrace trace;
  const ReadLine read = read_step_line(text, trace);
  if (read.says_step && text.front() != 'I' && is_warning(text)) return false;
  if (read.says_step) layouts_.learn(text, read, trace);
  return take_read(text, read);
}

bool StepLog::take_read(std::string_view text, const ReadLine& read) {
  const StepLine& line = read.line;
  if (line.bar && line.batches > 0 && !line.has_loss()) {
    // A bar of Hugging Face's trainer: it counts, the dictionaries after it say the rest.
    // Downloads and evaluations have bars of their own; only a bar that is done makes room for another.
    if (line.batches == bar_total_ || bar_step_ == bar_total_ || !builder_.progress().open) {
      // The first bar came behind the first dictionary, so each shows the step of the one before it.
      if (bar_step_ < 0 && line.batch > 0 && builder_.progress().open && !strong_ && builder_.progress().steps == 1 &&
          builder_.progress().first_step == 1) {
        builder_.renumber_first(line.batch);
        bar_follows_ = true;
        step_gap_ = line.batch;
      }
      bar_total_ = line.batches;
      bar_step_ = line.batch;
      bar_rate_ = line.throughput;
      bar_time_ = line.time;
    }
    return true;
  }
  if (!read.says_step) {
    const std::string_view start = trimmed(text);
    if (!is_missing(line.epoch) && start.size() < 40 && (start.starts_with("Epoch") || start.starts_with("epoch"))) {
      take_held_bar();
      epoch_ = line.epoch;
      return true;
    }
    if (read.opens && block_number_ == 0 && !is_space(text.front()) && text.back() != ',') {
      joiner_.open_block(text);
      block_number_ = number_;
      return true;
    }
    return read.bare_loss && take_bare_loss(text, line);
  }
  if (line.summary) {
    note_some(summaries_, "skipped: sums up the whole training, no step");
    return true;
  }
  PrintedStep printed(line);
  printed.line = number_;
  printed.rank = line.rank;
  printed.redrawn = line.bar;
  printed.at = stamp_.read(text);
  // "step 250: train loss 3.1, val loss 3.2": both are means of an evaluation.
  printed.estimate = !is_missing(line.loss) && !is_missing(line.val_loss) && line.named_loss && is_missing(line.time) &&
                     is_missing(line.elapsed) && is_missing(line.throughput);
  // fairseq's mean over an epoch.
  printed.estimate |= text.find("| train | epoch") != std::string_view::npos;
  // Some repeat the last validation loss on every line.
  if (!is_missing(line.val_loss) && !printed.estimate) {
    if (!is_missing(line.loss) && line.val_loss == repeated_val_loss_) printed.val_loss = missing;
    repeated_val_loss_ = line.val_loss;
  }
  if (!settle_step(line, printed)) return true;
  // Where the bar counts the steps of dictionaries, it times them too.
  if (line.record && bar_step_ >= 0 && is_missing(printed.time) && is_missing(printed.elapsed)) {
    StepLine timed = line;
    timed.time = printed.time = bar_time_;
    timed.time_unit = TimeUnit::s;
    if (is_missing(line.throughput)) {
      timed.throughput = printed.throughput = bar_rate_;
      timed.rate = RateLabel::iterations;
      timed.rate_text = "it/s";
    } else if (bar_rate_ > 0) {
      timed.time = printed.time = 1 / bar_rate_;
    }
    record(text, timed, printed);
  } else {
    record(text, line, printed);
  }
  return true;
}

void StepLog::take_held_bar() {
  if (!held_bar_) return;
  const PrintedStep printed = *held_bar_;
  held_bar_.reset();
  record({}, held_line_, printed);
}

void StepLog::record(std::string_view text, const StepLine& line, PrintedStep printed) {
  if (printed.step < 0 || printed.step > largest_step) {
    epoch_offset_ = 0;
    note_some(malformed_, "not read as a step: its number is out of all bounds");
    return;
  }
  if (!builder_.progress().open || begins_run(printed.step)) begin_run(text, line, printed.step);
  if (start_of_steps_.empty() && trimmed(text).size() > 6) start_of_steps_ = trimmed(text).substr(0, 4);
  strong_ = weak_ = resumes_ = fenced_before_step_ = false;
  if (!heading_.empty() || !paragraph_.empty() || !code_.empty()) forget_texts();
  builder_.add(line, printed);
}

// Steps that start over begin a new run where a new block begins; else they are the same run, resumed.
bool StepLog::begins_run(std::int64_t step) const {
  if (step > builder_.progress().last_step)
    return strong_ && !heading_.empty() && step <= builder_.progress().first_step;
  if (strong_ && !resumes_) return step < builder_.progress().last_step || builder_.progress().steps == 1;
  return weak_ && step <= builder_.progress().first_step && step < builder_.progress().last_step && !resumes_;
}

void StepLog::begin_run(std::string_view text, const StepLine& line, std::int64_t) {
  end_run();
  facts_left_ = lines_read_for_facts;
  Run run;
  name_block(run);
  if (facts_.hardware.empty()) facts_.hardware = hardware_;
  hardware_ = facts_.hardware;
  builder_.begin({.run = std::move(run),
                  .facts = facts_,
                  .family = std::string(family_of(text, line)),
                  .step_is_epoch = !line.has_step() && line.batch < 0 && (!line.record || records_are_epochs_)});
  facts_ = {};
  if (!is_missing(early_val_loss_)) builder_.validate(early_val_loss_, false, number_);
  early_val_loss_ = missing;
  if (!item_.empty() && !std::exchange(item_has_steps_, true)) ++items_with_steps_;
}

void StepLog::end_run() {
  if (!builder_.progress().open) return;
  ++runs_;
  stages_.push_back(builder_.stage());
  builder_.end();
  epoch_offset_ = implied_epoch_ = 0;
  step_gap_ = 1;
  raw_step_ = last_batch_ = bar_step_ = bar_total_ = -1;
  epoch_ = first_epoch_ = offset_epoch_ = bar_val_loss_ = repeated_val_loss_ = missing;
  bar_starts_with_loss_ = bar_follows_ = false;
}

void StepLog::tell_ladder() {
  std::vector<int> rungs(static_cast<std::size_t>(runs_));
  const bool turned = newest_first();
  for (int i = 0; i < runs_; ++i) rungs[static_cast<std::size_t>(i)] = turned ? runs_ - 1 - i : i;
  if (turned) sink_.note(0, "the newest block stands first, so the ladder begins with the last one");
  sink_.ladder({.name = stem_, .notes = notes_}, rungs);
}

void StepLog::note_some(int& count, std::string text) {
  if (++count <= most_notes_of_a_kind) sink_.note(number_, std::move(text));
}

void StepLog::say_counts() {
  const auto say = [&](int count, const char* what) {
    if (count > most_notes_of_a_kind) sink_.note(0, std::to_string(count - most_notes_of_a_kind) + " more " + what);
  };
  say(warnings_, "warnings of compilers or libraries were skipped");
  say(malformed_, "lines look like steps but could not be read as such");
  say(summaries_, "lines sum up the whole training and were skipped");
}

Importer importers::step_log() {
  return {.id = "log",
          .title = "The log of a training program",
          .recognises = [](ImportInput& input) { return looks_like_text(input.head()); },
          .read = [](ImportInput& input, const ImportOptions& options,
                     ImportSink& sink) { StepLog(input, options, sink).read(); }};
}

}  // namespace stepladder
