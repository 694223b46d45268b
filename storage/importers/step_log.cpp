// The log of a training program, or notes with such logs in them: one tolerant reader for all families that print a
// line for a step.
#include <algorithm>
#include <cmath>
#include <optional>

#include "storage/importers/importer.h"
#include "storage/importers/line_reader.h"
#include "storage/importers/log_facts.h"
#include "storage/importers/run_builder.h"
#include "storage/importers/step_line.h"

namespace stepladder {
namespace {

constexpr std::size_t longest_title = 160;
constexpr std::size_t longest_notes = 4000;
constexpr std::int64_t largest_step = 1'000'000'000'000'000;
constexpr int most_notes_of_a_kind = 20;
constexpr int lines_read_for_facts = 20000;  // of each run: what it is has been said by then

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}

std::string_view trimmed(std::string_view text, std::string_view characters = " \t") {
  const std::size_t first = text.find_first_not_of(characters);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(characters) - first + 1);
}

std::string shortened(std::string_view text, std::size_t size) {
  if (text.size() <= size) return std::string(text);
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;  // whole characters
  return std::string(text.substr(0, size)) + "...";
}

// Whether a line could say a step at all: a look at each byte, long before any number is read.
bool may_say_step(std::string_view line) {
  const char* p = line.data();
  const char* const end = p + line.size();
  if (line.size() < 5) return false;
  const auto follows = [&](const char* at, std::string_view rest) {
    if (static_cast<std::size_t>(end - at) < rest.size()) return false;
    for (std::size_t i = 0; i < rest.size(); ++i)
      if ((at[i] | 0x20) != rest[i]) return false;
    return true;
  };
  for (; p < end; ++p) {
    switch (*p | 0x20) {
      case 'l':
        if (follows(p + 1, "oss")) return true;
        break;
      case 's':
        if (follows(p + 1, "tep") || (p[0] == 's' && follows(p + 1, "/it"))) return true;
        break;
      case 'i':
        if (follows(p + 1, "ter") || follows(p + 1, "t/s")) return true;
        break;
      case 'e':
        if (follows(p + 1, "poch") || follows(p + 1, "l:") || follows(p + 1, "ntropy")) return true;
        break;
      case 'r':
        if (follows(p + 1, "l:")) return true;
        break;
      default:
        break;
    }
  }
  return line.size() < 48 && is_digit(trimmed(line).empty() ? ' ' : trimmed(line).front());
}

// "W0818 17:17:31.970000 1354 torch/...]", "UserWarning: ...": what compilers and libraries say of themselves.
bool is_warning(std::string_view line) {
  const std::string_view text = trimmed(line);
  if (text.size() > 8 && (text[0] == 'W' || text[0] == 'E' || text[0] == 'I') && is_digit(text[1]) &&
      is_digit(text[2]) && is_digit(text[3]) && is_digit(text[4]) && text[5] == ' ')
    return true;
  return contains_word(text, "warning:") || contains_word(text, "warnings.warn");
}

// "## Speed-up 2", "# ----- BASELINE ----- #", "=== run 3: bf16 ===": the words, or nothing.
std::string_view heading_of(std::string_view line) {
  const std::string_view text = trimmed(line);
  if (text.size() < 3 || text.size() > longest_title) return {};
  const bool sharp = text[0] == '#';
  const bool framed =
      text.starts_with("===") || text.starts_with("---") || text.starts_with("***") || text.starts_with(">>>");
  if (!sharp && !framed) return {};
  if (sharp && !(text.find_first_not_of('#') != std::string_view::npos && text[text.find_first_not_of('#')] == ' '))
    return {};
  const std::string_view words = trimmed(text, "#=*->~ \t");
  if (words.size() < 2 || std::none_of(words.begin(), words.end(), is_letter)) return {};
  if (words.starts_with("Running ") || words.starts_with("http")) return {};
  return words;
}

// "3. Speed-up-2: ..." in a list.
struct Item {
  std::size_t indent = 0;
  std::string_view text;
};
std::optional<Item> item_of(std::string_view line) {
  const std::size_t indent = line.find_first_not_of(" \t");
  if (indent == std::string_view::npos) return std::nullopt;
  std::size_t at = indent;
  while (at < line.size() && is_digit(line[at])) ++at;
  if (at == indent || at - indent > 2 || at + 2 >= line.size() || (line[at] != '.' && line[at] != ')') ||
      line[at + 1] != ' ')
    return std::nullopt;
  const std::string_view text = trimmed(line.substr(at + 1));
  if (text.empty() || std::none_of(text.begin(), text.end(), is_letter)) return std::nullopt;
  return Item{indent, text};
}

bool is_code_line(std::string_view line) {
  const std::string_view text = trimmed(line);
  for (const std::string_view start : {"import ", "from ", "def ", "class ", "return ", "@", "if __name__", "#include"})
    if (text.starts_with(start)) return true;
  return false;
}

bool speaks_of_resuming(std::string_view line) {
  return contains_word(line, "resum") || contains_word(line, "restor") || contains_word(line, "checkpoint") ||
         contains_word(line, "continu");
}

// Which family of programs prints such a line; what each calls things is kept with the run under this name.
std::string_view family_of(std::string_view text, const StepLine& line) {
  const auto has = [&](std::string_view words) { return text.find(words) != std::string_view::npos; };
  const std::string_view start = trimmed(text);
  if (start.starts_with("s:") && (has("trl:") || has("tel:"))) return "llm.c";
  if (start.starts_with("step:") && has("train_time:")) return "modded-nanogpt";
  if (has("tps:") && (has("memory:") || has("tflops:"))) return "torchtitan";
  if (has("elapsed time per iteration") || has("lm loss")) return "megatron";
  if (start.starts_with("iter ") && has("time") && has("mfu")) return "nanogpt";
  if (start.starts_with("step ") && has("train loss") && has("val loss")) return "nanogpt";
  if (line.keras) return "keras";
  if (line.bar) return has("v_num") ? "lightning" : "tqdm";
  if (line.record && (has("'loss'") || has("'eval_loss'"))) return "huggingface";
  if (has("num_updates")) return "fairseq";
  if (line.record && start.starts_with("{")) return "json-lines";
  if (has("MFU") || has("z)") || (has("(") && has("tok/s)"))) return "llm.c";
  if (has("norm") && has("dt:") && has("tok/sec")) return "build-nanogpt";
  if (has("Train Epoch:")) return "pytorch-examples";
  if (start.find(' ') != std::string_view::npos && start.size() < 48 && is_digit(start.front()) && !has("|"))
    return "build-nanogpt";
  if (std::count(text.begin(), text.end(), '=') > 1) return "key=value";
  return "plain";
}

class StepLog {
 public:
  StepLog(ImportInput& input, const ImportOptions& options, ImportSink& sink)
      : reader_(input, sink),
        options_(options),
        sink_(sink),
        builder_(options, sink),
        stem_(input.path().stem().string()) {}

  void read() {
    std::string_view line;
    while (reader_.next(line)) take(line);
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

 private:
  void take(std::string_view line);
  bool take_fence(std::string_view line);
  bool take_step(std::string_view line);
  void take_text(std::string_view line);
  bool settle_step(const StepLine& line, PrintedStep& printed);
  bool settle_bar(const StepLine& line, PrintedStep& printed);
  bool settle_record(const StepLine& line, PrintedStep& printed);
  void record(std::string_view text, const StepLine& line, PrintedStep printed);
  void validate(double val_loss);
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
  const ImportOptions& options_;
  ImportSink& sink_;
  RunBuilder builder_;
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
  double bar_val_loss_ = missing;
  std::optional<PrintedStep> held_bar_;
  StepLine held_line_;
  double early_val_loss_ = missing;
  bool early_val_noted_ = false;

  std::string start_of_steps_;  // the first letters of a step's line, to know a broken one by
  int warnings_ = 0;
  int malformed_ = 0;
  int summaries_ = 0;
};

void StepLog::take(std::string_view line) {
  if (take_fence(line)) return;
  if (!in_code_ && may_say_step(line) && take_step(line)) return;
  take_text(line);
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
  const ReadLine read = read_step_line(text);
  const StepLine& line = read.line;
  if (line.bar && line.batches > 0 && !line.has_loss()) {
    // A bar of Hugging Face's trainer: it counts, the dictionaries after it say the rest.
    if (bar_total_ < 0 || line.batches == bar_total_) {
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
    return false;
  }
  if (line.summary) {
    note_some(summaries_, "skipped: sums up the whole training, no step");
    return true;
  }
  PrintedStep printed;
  printed.line = reader_.number();
  printed.loss = line.loss;
  printed.val_loss = line.val_loss;
  printed.time = line.time;
  printed.elapsed = line.elapsed;
  printed.mean_time = line.mean_time;
  printed.throughput = line.throughput;
  printed.lr = line.lr;
  printed.grad_norm = line.grad_norm;
  printed.tokens = line.tokens;
  printed.batch_size = line.batch_size;
  printed.redrawn = line.bar;
  // "step 250: train loss 3.1, val loss 3.2": both are means of an evaluation.
  printed.estimate = !is_missing(line.loss) && !is_missing(line.val_loss) && line.named_loss && is_missing(line.time) &&
                     is_missing(line.elapsed) && is_missing(line.throughput);
  if (!settle_step(line, printed)) return true;
  // Where the bar counts the steps of dictionaries, it times them too.
  if (line.record && bar_step_ >= 0 && is_missing(printed.time) && is_missing(printed.throughput)) {
    StepLine timed = line;
    timed.time = printed.time = bar_time_;
    timed.throughput = printed.throughput = bar_rate_;
    timed.time_unit = TimeUnit::s;
    timed.rate = RateLabel::iterations;
    timed.rate_text = "it/s";
    record(text, timed, printed);
  } else {
    record(text, line, printed);
  }
  return true;
}

// Finds the number of the step that a line speaks of; false where the line is done with.
bool StepLog::settle_step(const StepLine& line, PrintedStep& printed) {
  if (line.has_step()) {
    std::int64_t step = line.step;
    // Some count from the start in every epoch.
    if (!is_missing(line.epoch)) {
      if (!is_missing(offset_epoch_) && line.epoch > offset_epoch_ && raw_step_ >= 0 && step <= raw_step_ &&
          builder_.open() && !strong_)
        epoch_offset_ = builder_.last_step() + step_gap_ - step;
      offset_epoch_ = line.epoch;
    }
    if (raw_step_ >= 0 && step > raw_step_) step_gap_ = step - raw_step_;
    if (is_missing(line.epoch)) epoch_offset_ = 0;
    raw_step_ = step;
    printed.step = step + epoch_offset_;
    return true;
  }
  if (line.batch >= 0 && line.has_loss()) return settle_bar(line, printed);
  if (line.record) return settle_record(line, printed);
  const bool whole_epoch =
      !is_missing(line.epoch) && line.epoch >= 0 && line.epoch < 1e9 && line.epoch == std::floor(line.epoch);
  if (whole_epoch && !(builder_.open() && !builder_.step_is_epoch && !strong_)) {
    printed.step = static_cast<std::int64_t>(line.epoch);
    return true;
  }
  if (!is_missing(line.val_loss)) validate(line.val_loss);
  return false;
}

bool StepLog::settle_bar(const StepLine& line, PrintedStep& printed) {
  if (is_missing(line.loss)) {  // a bar over the validation set; its last value stays
    validate(line.val_loss);
    return false;
  }
  double epoch = is_missing(line.epoch) ? epoch_ : line.epoch;
  if (is_missing(epoch)) {
    if (line.batch < last_batch_ && !strong_) ++implied_epoch_;
    epoch = static_cast<double>(implied_epoch_);
  }
  last_batch_ = line.batch;
  if (is_missing(first_epoch_) || epoch < first_epoch_) first_epoch_ = epoch;
  const double before = std::clamp(epoch - first_epoch_, 0.0, 1e6) *
                        static_cast<double>(std::min<std::int64_t>(line.batches, 1'000'000'000));
  printed.step = static_cast<std::int64_t>(before) + line.batch;

  if (line.keras) {
    // A mean over the epoch so far: only the finished bar is a figure.
    if (line.batch < line.batches) {
      if (held_bar_ && held_bar_->step > printed.step) take_held_bar();
      held_bar_ = printed;
      held_line_ = line;
      held_line_.rate_text = {};
      return false;
    }
    held_bar_.reset();
    return true;
  }
  if (line.bar) {
    // A bar that shows a loss at 0/N is drawn before its count goes up: 0 is the first step.
    if (line.batch == 0) bar_starts_with_loss_ = true;
    if (bar_starts_with_loss_) {
      if (line.batch == line.batches) return false;
      ++printed.step;
    }
    // Its postfix goes on showing the last validation loss.
    if (!is_missing(printed.val_loss) && printed.val_loss == bar_val_loss_) printed.val_loss = missing;
    if (!is_missing(printed.val_loss)) bar_val_loss_ = printed.val_loss;
  }
  return true;
}

// A dictionary without a step: the bar beside it knows, else it is the next one.
bool StepLog::settle_record(const StepLine& line, PrintedStep& printed) {
  if (is_missing(line.loss)) {
    if (!is_missing(line.val_loss)) validate(line.val_loss);
    return false;
  }
  const bool goes_on = builder_.open() && !strong_;
  const std::int64_t last = goes_on ? builder_.last_step() : 0;
  if (bar_step_ > last) {
    step_gap_ = bar_step_ - last;
    printed.step = bar_step_;
  } else {
    printed.step = last + (bar_step_ >= 0 ? step_gap_ : 1);
  }
  return true;
}

void StepLog::validate(double val_loss) {
  if (builder_.open() && !(strong_ && weak_))
    builder_.validate(val_loss, reader_.number());
  else
    early_val_loss_ = val_loss;
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
  if (!builder_.open() || begins_run(printed.step)) begin_run(text, line, printed.step);
  if (start_of_steps_.empty() && trimmed(text).size() > 6) start_of_steps_ = trimmed(text).substr(0, 4);
  strong_ = weak_ = resumes_ = fenced_before_step_ = false;
  if (!heading_.empty() || !paragraph_.empty() || !code_.empty()) forget_texts();
  builder_.labels(line);
  builder_.add(printed);
}

// Steps that start over begin a new run where a new block begins; else they are the same run, resumed.
bool StepLog::begins_run(std::int64_t step) const {
  if (step > builder_.last_step()) return strong_ && !heading_.empty() && step <= builder_.first_step();
  if (strong_ && !resumes_) return step < builder_.last_step() || builder_.steps() == 1;
  return weak_ && step <= builder_.first_step() && step < builder_.last_step() && !resumes_;
}

void StepLog::begin_run(std::string_view text, const StepLine& line, std::int64_t) {
  end_run();
  facts_left_ = lines_read_for_facts;
  Run run;
  name_block(run);
  if (facts_.hardware.empty()) facts_.hardware = hardware_;
  hardware_ = facts_.hardware;
  builder_.begin(std::move(run), facts_, std::string(family_of(text, line)));
  builder_.step_is_epoch = !line.has_step() && line.batch < 0 && !line.record;
  facts_ = {};
  if (!is_missing(early_val_loss_)) builder_.validate(early_val_loss_, reader_.number());
  early_val_loss_ = missing;
  if (!item_.empty() && !std::exchange(item_has_steps_, true)) ++items_with_steps_;
}

void StepLog::end_run() {
  if (!builder_.open()) return;
  ++runs_;
  stages_.push_back(builder_.run().stage);
  builder_.end();
  epoch_offset_ = implied_epoch_ = 0;
  step_gap_ = 1;
  raw_step_ = last_batch_ = bar_step_ = bar_total_ = -1;
  epoch_ = first_epoch_ = offset_epoch_ = bar_val_loss_ = missing;
  bar_starts_with_loss_ = false;
}

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
    sink_.end_run(run, "none printed");
    sink_.note(reader_.number(), "'" + run.stage + "' has no steps; kept as a rung without figures: " + run.title);
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
  if (builder_.open() && !start_of_steps_.empty() && text.starts_with(start_of_steps_) && !weak_ && !in_code_)
    note_some(malformed_, "not read as a step: " + shortened(text, 80));

  --facts_left_;
  const bool is_fact = facts_.read(line);
  if (runs_ == 0 && !builder_.open() && !facts_.hardware.empty()) hardware_ = facts_.hardware;
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
    if (!builder_.open() && runs_ == 0 && notes_.size() < longest_notes) notes_ += heading_ + "\n";
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
  if (!builder_.open() && runs_ == 0 && !is_fact && notes_.size() < longest_notes) notes_ += std::string(text) + "\n";
  if (!is_fact && paragraph_.size() < longest_title && !in_fence_)
    paragraph_ += (paragraph_.empty() ? "" : " ") + std::string(text);
  else if (in_fence_ && !is_fact && paragraph_.empty() && !item_.empty() && !item_has_steps_)
    paragraph_ = text;
}

bool StepLog::newest_first() const {
  if (says_newest_first_) return true;
  return stages_.size() > 1 && contains_word(stages_.back(), "baseline") && !contains_word(stages_.front(), "baseline");
}

void StepLog::tell_ladder() {
  std::vector<int> rungs(static_cast<std::size_t>(runs_));
  const bool turned = newest_first();
  for (int i = 0; i < runs_; ++i) rungs[static_cast<std::size_t>(i)] = turned ? runs_ - 1 - i : i;
  if (turned) sink_.note(0, "the newest block stands first, so the ladder begins with the last one");
  sink_.ladder({.name = stem_, .notes = notes_}, rungs);
}

void StepLog::note_some(int& count, std::string text) {
  if (++count <= most_notes_of_a_kind) sink_.note(reader_.number(), std::move(text));
}

void StepLog::say_counts() {
  const auto say = [&](int count, const char* what) {
    if (count > most_notes_of_a_kind) sink_.note(0, std::to_string(count - most_notes_of_a_kind) + " more " + what);
  };
  say(warnings_, "warnings of compilers or libraries were skipped");
  say(malformed_, "lines look like steps but could not be read as such");
  say(summaries_, "lines sum up the whole training and were skipped");
}

}  // namespace

Importer importers::step_log() {
  return {.id = "log",
          .title = "The log of a training program",
          .recognises = [](ImportInput& input) { return looks_like_text(input.head()); },
          .read = [](ImportInput& input, const ImportOptions& options,
                     ImportSink& sink) { StepLog(input, options, sink).read(); }};
}

}  // namespace stepladder
