// Reads the log of a training program, or notes that contain such logs: one tolerant reader for all families that print
// a line for a step.
#include "storage/importers/logs/step_log.h"

#include <cmath>
#include <memory>
#include <utility>

#include "storage/importers/logs/lines/line_doubt.h"
#include "storage/importers/logs/lines/log_words.h"
#include "storage/importers/logs/lines/pair_meaning.h"
#include "storage/importers/logs/lines/setting_lines.h"
#include "storage/importers/logs/lines/text_pairs.h"
#include "storage/importers/text.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

constexpr std::int64_t few_fractions = 10;  // of so many steps one may be a fraction: a stray line

// "tokens/second: 211_646"; missing if the words don't give such a rate.
double tokens_per_s_in(std::string_view text) {
  PairScanner scanner(text);
  for (Pair pair; scanner.next(pair);)
    if (const Meaning meaning = meaning_of(pair);
        pair.separated && meaning.field == Field::throughput && meaning.rate == RateLabel::tokens)
      return pair.value * meaning.scale;
  return missing;
}

}  // namespace

StepLog::StepLog(const std::filesystem::path& path, const ImportOptions& options, ImportSink& sink)
    : lines_(sink, !path.empty() && !options.live),
      outline_(options.known_stages),
      run_(options, sink),
      ladder_(path.stem().string()),
      sink_(sink),
      warnings_(sink, "warnings from compilers or libraries were skipped"),
      placed_(sink, "records between two bars have no certain steps"),
      malformed_(sink, "lines look like steps but could not be read as such"),
      summaries_(sink, "lines sum up the whole training and were skipped") {}

void StepLog::take(std::string_view bytes) {
  lines_.give(bytes);
  while (const LogLine* line = lines_.next()) take(*line);
}

void StepLog::finish() {
  lines_.finish();
  while (const LogLine* line = lines_.next()) take(*line);
  release_records();
  add(counter_.release_held(), {}, lines_.number());
  if (run_.progress().open) release_early();
  if (ladder_.empty() && run_.progress().steps == 1 && is_bare_ && has_prose_)
    throw ImportError("is prose: one line looks like a training step, and no other repeats it");
  end_run();
  leave_item(lines_.number());
  if (fractions_ * few_fractions > steps_)
    throw ImportError("counts its steps in fractions (" + std::to_string(fractions_) + " lines, first line " +
                      std::to_string(first_fraction_) +
                      "), which are no step numbers; print whole steps, or call the count epoch");
  if (ladder_.empty())
    throw ImportError(is_missing(early_val_loss_)
                          ? "contains no training step: no line counts a step (or an epoch) and gives a "
                            "loss, a time or another number for it"
                          : "contains a validation loss but no training step");
  if (const std::string writers = lines_.writers().several(); !writers.empty())
    throw ImportError("holds the steps of several trainings or processes, whose lines begin with " + writers +
                      "; give each training a file of its own, with the lines of one process");
  warnings_.finish();
  malformed_.finish();
  placed_.finish();
  summaries_.finish();
  ladder_.report(sink_);
}

void StepLog::take(const LogLine& line) {
  if (line.kind == LogLine::Kind::step || line.kind == LogLine::Kind::record)
    if (line.step.rank >= 0 && (lowest_rank_ < 0 || line.step.rank < lowest_rank_)) lowest_rank_ = line.step.rank;
  if (line.kind != LogLine::Kind::part && !parts_.empty()) read_parts();
  switch (line.kind) {
    case LogLine::Kind::step:
      return take_step(line);
    case LogLine::Kind::bar:
      return take_bar(line);
    case LogLine::Kind::epoch:
      release_records();
      add(counter_.release_held(), {}, line.number);
      return counter_.begin_epoch(line.step.epoch);
    case LogLine::Kind::bare_loss:
      return take_bare_loss(line);
    case LogLine::Kind::record:
      return take_record(line);
    case LogLine::Kind::summary:
      release_records();
      ended_ = is_complete_ = true;
      run_.read_total(line.text);
      return summaries_.note(line.number, "skipped: sums up the whole training");
    case LogLine::Kind::part:
      if (before_first_run() && parts_.size() < most_parts) parts_.emplace_back(line.text);
      return facts_.read_part(line.text);
    case LogLine::Kind::fence:
      release_records();
      is_document_ = true;
      facts_.listen();
      return outline_.fence(line.place);
    case LogLine::Kind::table_header:
      if (run_.progress().open) outline_.table_header();
      return;
    case LogLine::Kind::words:
      return take_words(line);
  }
}

// Reads an object over several lines that is a configuration, and not a step.
void StepLog::read_parts() {
  const std::vector<std::string> parts = std::exchange(parts_, {});
  const bool is_step = std::ranges::any_of(parts, [](const std::string& part) {
    const auto names = [&](const char* name) {
      return part.find(name + std::string("\":")) != std::string::npos ||
             part.find(name + std::string("':")) != std::string::npos;
    };
    return contains_word(part, "loss") || names("step") || names("epoch") || names("iter");
  });
  for (const std::string& part : parts)
    if (!is_step) facts_.read_configuration(part);
}

// The place in an epoch that counts samples is one in steps, if the batch size is printed and divides it.
void StepLog::take_step(const LogLine& line) {
  if (line.is_beside)
    return malformed_.note(line.number, "not read as a step, since it gives the step above another loss: " +
                                            shortened(trimmed(line.text), 80));
  if (take_fraction(line)) return;
  if (!line.step.samples) return count_step(line);
  LogLine counted = line;
  StepLine& step = counted.step;
  if (!run_.progress().open) {
    batch_ = is_missing(step.batch_size) ? facts_.batch() : std::llround(step.batch_size);
    if (batch_ == 0)
      sink_.note(line.number,
                 "\"" + shortened(trimmed(line.text), 40) +
                     "\" counts samples, and the log prints no batch size: the steps are samples here, and " +
                     "the times of batches are left out");
  }
  if (batch_ == 0) step.time = step.mean_time = missing;
  if (batch_ > 0 && (step.batch % batch_ == 0 || step.batch == step.batches)) {
    step.batch = (step.batch + batch_ - 1) / batch_;
    step.batches = (step.batches + batch_ - 1) / batch_;
  }
  count_step(counted);
}

// A step that is a fraction can't be stored, and truncated it would be another step.
bool StepLog::take_fraction(const LogLine& line) {
  const StepLine& step = line.step;
  if (!step.fractional_step || step.has_step() || step.batch >= 0 || !is_missing(step.epoch)) return false;
  if (fractions_++ == 0) first_fraction_ = line.number;
  malformed_.note(line.number,
                  "not read as a step, since its number is a fraction: " + shortened(trimmed(line.text), 80));
  return true;
}

void StepLog::count_step(const LogLine& line) {
  constexpr std::size_t most_records = 1000;
  const StepLine& step = line.step;
  if (step.record && !step.has_step() && counter_.has_bar() && records_.size() < most_records) {
    records_.push_back({std::string(line.text), line.number, line.at});
    return;
  }
  release_records();
  const bool joins_step = run_.progress().open && run_.progress().lacks_loss;
  counts_records_ |=
      step.record && !step.has_step() && !is_missing(step.loss) && !counter_.counts_epochs(step) && !joins_step;
  if (belongs_to_next(line)) {
    early_.push_back({std::string(line.text), line.number, line.at});
    return;
  }
  if (step.record && !step.has_step() && !is_missing(step.loss) && !is_missing(step.epoch))
    ended_ |= step.epoch < std::exchange(last_epoch_, step.epoch) && !resumes();
  add(counter_.count(line, run_.progress(), is_new_block()), line.text, line.number);
}

void StepLog::take_bar(const LogLine& line) {
  release_records(counter_.is_bar(line.step.batches) ? line.step.batch : -1);
  if (const auto first = counter_.follow_bar(line.step, run_.progress(), is_new_block())) run_.renumber_first(*first);
}

LogLine StepLog::Waiting::line() const {
  LogLine line{.kind = LogLine::Kind::step, .text = text, .number = number, .at = at};
  const ReadLine read = read_step_line(text);
  if (!read.says_step) line.kind = LogLine::Kind::record;
  line.step = read.line;
  return line;
}

// Numbers the records that were read since the last bar.
void StepLog::release_records(std::int64_t next_bar) {
  if (records_.empty()) return;
  const std::vector<Waiting> records = std::exchange(records_, {});
  std::vector<LogLine> lines;
  std::vector<double> epochs;
  for (const Waiting& each : records) {
    lines.push_back(each.line());
    const StepLine& step = lines.back().step;
    if (is_missing(step.loss)) continue;
    if (step.epoch < std::exchange(last_epoch_, step.epoch)) ended_ = !resumes();
    epochs.push_back(step.epoch);
  }
  std::vector<std::int64_t> steps;
  if (epochs.size() == 1)
    if (const std::int64_t step = counter_.place_one(epochs.front(), next_bar, run_.progress(), is_new_block());
        step > 0)
      steps.push_back(step);
  if (epochs.size() > 1) {
    bool is_certain = false;
    steps = counter_.place(epochs, next_bar, run_.progress(), is_new_block(), is_certain);
    if (!is_certain)
      placed_.note(lines.front().number, "the steps of " + std::to_string(epochs.size()) +
                                             " records between two bars are not certain; they were spaced evenly");
  }
  std::size_t next = 0;
  for (const LogLine& line : lines) {
    if (!is_missing(line.step.loss) && next < steps.size()) counter_.set_next(steps[next++]);
    add(counter_.count(line, run_.progress(), is_new_block()), line.text, line.number);
  }
}

// An evaluation of a step at which the run that is read had begun already: it was printed before another run's steps.
bool StepLog::belongs_to_next(const LogLine& line) const {
  if (!line.step.has_step() || !is_missing(line.step.loss)) return false;
  const RunProgress run = run_.progress();
  return run.open && run.steps > 1 && line.step.step <= run.first_step && line.step.step < run.last_step &&
         line.step.rank <= lowest_rank_;
}

void StepLog::release_early() {
  for (const Waiting& each : std::exchange(early_, {})) {
    const LogLine line = each.line();
    if (line.kind == LogLine::Kind::step)
      add(counter_.count(line, run_.progress(), false), line.text, line.number);
    else
      log_others(line.step, line.text, line.step.step, line.at);
  }
}

// Whether the step is another training's: steps start over in a new block, behind a summary, or with another plan or
// loss. Otherwise the run was resumed.
bool StepLog::begins_run(const Counted& counted) const {
  const RunProgress run = run_.progress();
  const std::int64_t step = counted.step.step;
  if (outline_.begins_run(step, run)) return true;
  if (outline_.resumes() || step > run.last_step || (step == run.last_step && run.steps > 1)) return false;
  if (ended_) return !is_missing(counted.step.loss);
  if (step == run.last_step || step > run.first_step + 1 || is_missing(counted.step.loss)) return false;
  if (counted.step.rank > lowest_rank_) return false;       // another process is a few steps behind
  const double most = step == run.first_step ? 0.1 : 0.25;  // that a loss changes from attempt to attempt
  return counted.line->total != total_ ||
         (run.last_step - step > 2 && std::fabs(counted.step.loss - first_loss_) > most * std::fabs(first_loss_));
}

// Takes the loss of the step above that lacks one, or of the epoch that a heading named.
void StepLog::take_bare_loss(const LogLine& line) {
  const RunProgress run = run_.progress();
  if (run.open && run.lacks_loss) return run_.complete_last(line.step.loss);
  const Counted counted = counter_.count_bare_loss(line, run, is_new_block());
  if (counted.what == Counted::What::nothing) return take_words(line);
  add(counted, line.text, line.number);
}

// An evaluation between two steps; or a step of a program that logs neither losses nor times.
void StepLog::take_record(const LogLine& line) {
  if (belongs_to_next(line) || (!run_.progress().open && !line.step.record)) {
    early_.push_back({std::string(line.text), line.number, line.at});
    return;
  }
  if (!line.step.record || (run_.progress().open && !run_.has_only_others()))
    return log_others(line.step, line.text, line.step.step, line.at);
  PrintedStep step(line.step);
  step.step = line.step.step;
  step.line = line.number;
  step.rank = line.step.rank;
  step.at = line.at;
  add({.what = Counted::What::step, .step = step, .line = &line.step}, line.text, line.number);
}

void StepLog::log_others(const StepLine& line, std::string_view text, std::int64_t step, double at) {
  if (!line.has_others || line.rank > lowest_rank_) return;  // the first rank speaks for all
  read_other_pairs(text, line, others_);
  for (const OtherPair& each : others_) run_.log(each.name, each.unit, {step, each.value, at});
}

// Words that an earlier line of the run had are known.
void StepLog::log_texts(const StepLine& line, std::string_view text) {
  if (line.bar || line.rank > lowest_rank_) return;
  read_text_pairs(text, texts_);
  for (const auto& [name, value] : texts_) run_.log_text(name, value);
}

// Compares the batch that a step's line names to that of the run's first.
void StepLog::check_shape(std::string_view text, std::int64_t line) {
  if (!has_step_shape_) return;
  LogFacts facts;
  facts.read_step(text);
  const auto differs = [](std::int64_t known, std::int64_t found) { return known > 0 && found > 0 && known != found; };
  if (!differs(step_facts_.batch, facts.batch) && !differs(step_facts_.global_batch, facts.global_batch) &&
      !differs(step_facts_.seq, facts.seq) && !differs(step_facts_.tokens_printed, facts.tokens_printed))
    return;
  has_step_shape_ = false;
  run_.forget_shape(line);
}

void StepLog::add(Counted counted, std::string_view text, std::int64_t line) {
  switch (counted.what) {
    case Counted::What::nothing:
      return;
    case Counted::What::validation:
      return validate(*counted.line, line);
    case Counted::What::out_of_bounds:
      return malformed_.note(line, "not read as a step: its number is out of range");
    case Counted::What::step:
      break;
  }
  const bool begins = begins_run(counted);
  if (begins)
    begin_run(*counted.line, text, line);
  else
    check_shape(text, line);
  if (counted.step.step > run_.progress().last_step)
    ended_ = is_complete_ = false;  // the training that was said to end goes on
  if (!early_.empty() && !is_missing(counted.step.loss)) release_early();
  if (begins || is_missing(first_loss_)) {
    first_loss_ = counted.step.loss;
    total_ = counted.line->total;
  }
  if (start_of_steps_.empty() && trimmed(text).size() > 6) start_of_steps_ = trimmed(text).substr(0, 4);
  outline_.step();
  if (line > early_end_.line()) early_end_.forget();  // a record may have waited for a bar behind it
  ++steps_;
  is_bare_ = !counted.line->record && !counted.line->bar && counted.line->total < 0 && is_missing(counted.step.time) &&
             is_missing(counted.step.elapsed) && is_missing(counted.step.throughput) && is_missing(counted.step.lr);
  const std::int64_t step = counted.step.step;
  const double at = counted.step.at;
  const double val_loss = counted.step.val_loss;
  if (!is_main_set(*counted.line, line)) counted.step.val_loss = missing;
  run_.add(*counted.line, std::move(counted.step));
  if (counted.line->micro >= 0) return;  // the step's own line has them
  log_set(*counted.line, {step, val_loss, at});
  log_texts(*counted.line, text);
  if (counted.line->has_unread_times && !run_.has_unread_times()) run_.keep_unread_times(unread_times(text), line);
  log_others(*counted.line, text, step, at);
  run_.read_figures(text, step);
}

// A validation loss between two blocks is printed before the first step of the second.
void StepLog::validate(const StepLine& line, std::int64_t number) {
  if (run_.progress().open && !(outline_.new_block() && outline_.has_words())) {
    run_.weigh_loss(line);
    if (is_main_set(line, number)) run_.validate(line.val_loss, line.tested, number);
    log_set(line, {run_.progress().last_step, line.val_loss, missing});
  } else {
    early_val_loss_ = line.val_loss;
    early_epoch_ = line.epoch;
    is_before_bar_ = !counter_.has_begun();
  }
}

// Whether the validation loss is the run's: of several sets with a name the first's, and none's if one has no name.
bool StepLog::is_main_set(const StepLine& line, std::int64_t number) {
  if (is_missing(line.val_loss)) return true;
  if (line.val_set.empty()) return has_plain_set_ = true;
  if (val_set_.empty()) val_set_ = line.val_set;
  if (line.val_set == val_set_) return !has_plain_set_;
  if (!std::exchange(has_sets_, true))
    sink_.note(number, "several evaluation sets are named, and the loss of each is a metric; " +
                           (has_plain_set_ ? "val_loss is the one without a name"
                                           : "val_loss is \"" + val_set_ + "\", which is printed first"));
  return false;
}

void StepLog::log_set(const StepLine& line, const MetricPoint& point) {
  if (line.val_set.empty() || is_missing(point.value) || line.rank > lowest_rank_) return;
  run_.log(line.val_set, {}, point);
}

void StepLog::begin_run(const StepLine& line, std::string_view text, std::int64_t number) {
  end_run();
  const BlockName name = outline_.name();
  facts_.suggest_precision(name.precision);
  facts_.read_step(text);
  step_facts_ = {};
  step_facts_.read_step(text);
  has_step_shape_ =
      step_facts_.batch > 0 || step_facts_.global_batch > 0 || step_facts_.seq > 0 || step_facts_.tokens_printed > 0;
  const std::string family(family_of(text, line));
  if (family == "llama.cpp")
    sink_.note(number, "a bar counts data and shows the mean loss of its epoch so far, so an epoch is one record here");
  Run run;
  run.stage = name.stage;
  run.title = run.changed = name.title;
  run.printed.steps_are_counted = counts_records_ && !counter_.has_bar();
  run_.begin(
      {.run = std::move(run), .facts = facts_.take(), .family = family, .step_is_epoch = counter_.counts_epochs(line)});
  if (!is_missing(early_val_loss_)) {
    if (early_epoch_ == 0 || (is_before_bar_ && counter_.has_bar() && !outline_.resumes())) run_.validates_untrained();
    run_.validate(std::exchange(early_val_loss_, missing), false, number);
  }
  outline_.begin_run();
  val_set_.clear();
  has_plain_set_ = has_sets_ = false;
}

void StepLog::end_run() {
  if (!run_.progress().open) return;
  ladder_.add_run(run_.stage());
  if (std::exchange(counts_records_, false) && !counter_.has_bar() && !run_.progress().step_is_epoch)
    sink_.note(0, "the log prints no step numbers, so each of its records counts as a step");
  take_early_end();
  run_.end();
  counter_.end_run();
  ended_ = is_complete_ = false;
  last_epoch_ = missing;
}

// A training that was complete, or had reached its last planned step, is finished whatever happened behind it.
void StepLog::take_early_end() {
  const RunProgress run = run_.progress();
  const std::int64_t planned = total_ > 0 ? total_ : counter_.unfilled_bar();
  const bool is_complete = is_complete_ || (planned > 0 && run.last_step + 1 >= planned);
  if (!early_end_.found()) {
    // The next printed step might have been behind the last one.
    if (is_complete || is_document_ || planned <= 0 || run.last_step + counter_.step_gap() >= planned) return;
    const std::string reason = "its log ends at step " + grouped(run.last_step) + " of " + grouped(planned) +
                               "; whether its training did isn't known";
    sink_.note(0, reason);
    return run_.end_early(RunStatus::interrupted, reason);
  }
  sink_.note(early_end_.line(), "behind step " + std::to_string(run.last_step) + " the log says \"" +
                                    early_end_.reason() + "\"" +
                                    (is_complete ? "; the training was complete by then"
                                                 : ", so the run is " + std::string(to_string(early_end_.status()))));
  if (!is_complete) run_.end_early(early_end_.status(), early_end_.reason());
  early_end_.forget();
}

void StepLog::take_words(const LogLine& line) {
  const std::string_view text = trimmed(line.text);
  if (text.empty()) return;
  if (run_.progress().open && line.place != LogLine::Place::code) {
    early_end_.read(line.text, line.number);
    run_.read_total(line.text);
  }
  const auto item = item_of(line.text);
  const std::string_view heading = heading_of(line.text);
  is_document_ |= item || text.starts_with('#');
  if (item || !heading.empty()) release_records();  // they belong to the block before
  if (!facts_.attentive() && !item && heading.empty()) return outline_.any_words();
  if (is_warning(text)) return warnings_.note(line.number, "skipped: a warning from a compiler or library");
  const bool code = line.place == LogLine::Place::code;
  has_prose_ = has_prose_ || prose_at(text) != std::string_view::npos;
  if (run_.progress().open && !start_of_steps_.empty() && text.starts_with(start_of_steps_) && !outline_.has_words() &&
      !code && !line.joined)
    malformed_.note(line.number, "not read as a step: " + shortened(text, 80));

  if (line.place == LogLine::Place::outside && !is_space(line.text.front()) && is_assignment(text))
    outline_.assignment(false);
  if (outline_.assigns() && text.starts_with('#') && is_assignment(trimmed(text, "# ")))
    return outline_.assignment(true);
  bool is_fact = facts_.read(line.text);
  if (before_first_run() && facts_.read_configuration(line.text)) {
    is_fact = true;
    if (outline_.assigns()) outline_.assignment(false);
  }
  if (outline_.in_item_without_steps())
    if (const double rate = tokens_per_s_in(text); !is_missing(rate)) reported_ = rate;
  if (before_first_run()) facts_.keep_hardware();
  if (speaks_of_resuming(text)) outline_.resume();
  if (run_.progress().open && speaks_of_the_end(text)) ended_ = is_complete_ = true, early_end_.forget();
  if (code) return outline_.code(text);
  ladder_.read_order(text);
  if (item && line.place == LogLine::Place::outside) {
    if (!item->text.starts_with("![")) enter_item(*item, line.number);  // a picture
    return;
  }
  if (!heading.empty()) {
    if (before_first_run()) ladder_.add_note(heading);
    facts_.listen();
    return outline_.heading(heading);
  }
  outline_.any_words();
  if (outline_.separate(text, line.place)) return;
  if (before_first_run() && !is_fact) ladder_.add_note(text);
  outline_.words(text, line.place, is_fact);
}

void StepLog::enter_item(const Item& item, std::int64_t line) {
  if (outline_.leaves_item(item)) {
    leave_item(line);
    reported_ = missing;
  }
  outline_.enter_item(item);
  facts_.listen();
}

void StepLog::leave_item(std::int64_t line) {
  if (const std::optional<BlockName> tried = outline_.leave_item()) add_rung_without_steps(*tried, line);
}

void StepLog::add_rung_without_steps(const BlockName& name, std::int64_t line) {
  end_run();
  facts_.suggest_precision(name.precision);
  Run run;
  run.stage = name.stage;
  run.title = run.changed = name.title;
  run.hardware = facts_.sole_hardware();
  run.recipe = json_text(LogFacts{}.recipe("notes"));
  run.printed.unit = is_missing(reported_) ? "none printed" : "tokens/s, reported without steps";
  run.printed.tokens_per_s = std::exchange(reported_, missing);
  run.status = RunStatus::reported;
  run.reason = is_missing(run.printed.tokens_per_s) ? "a text describes it; no step and no figure is behind it"
                                                    : "a text reports its figure; no step is behind it";
  sink_.begin_run(run);
  sink_.end_run(run);
  sink_.note(line, "'" + run.stage + "' has no steps; it is kept as a rung " +
                       (is_missing(run.printed.tokens_per_s) ? "without measurements: "
                                                             : "with the throughput that it reports: ") +
                       run.title);
  ladder_.add_run(run.stage);
}

Importer importers::step_log() {
  return {.id = "log",
          .title = "The log of a training program",
          .recognises = [](std::string_view head, const auto&) { return looks_like_text(head); },
          .reader = [](const auto& path, const ImportOptions& options,
                       ImportSink& sink) { return std::make_unique<StepLog>(path, options, sink); }};
}

}  // namespace stepladder
