// Reads the log of a training program, or notes that contain such logs: one tolerant reader for all families that print
// a line for a step.
#include "storage/importers/logs/step_log.h"

#include <memory>
#include <utility>

#include "storage/importers/logs/lines/log_words.h"
#include "storage/importers/text.h"

namespace stepladder {

StepLog::StepLog(const std::filesystem::path& path, const ImportOptions& options, ImportSink& sink)
    : lines_(sink),
      outline_(options.known_stages),
      run_(options, sink),
      ladder_(path.stem().string()),
      sink_(sink),
      warnings_(sink, "warnings from compilers or libraries were skipped"),
      malformed_(sink, "lines look like steps but could not be read as such"),
      summaries_(sink, "lines sum up the whole training and were skipped") {}

void StepLog::take(std::string_view bytes) {
  lines_.give(bytes);
  while (const LogLine* line = lines_.next()) take(*line);
}

void StepLog::finish() {
  lines_.finish();
  while (const LogLine* line = lines_.next()) take(*line);
  add(counter_.release_held(), {}, lines_.number());
  end_run();
  leave_item(lines_.number());
  if (ladder_.empty())
    throw ImportError(is_missing(early_val_loss_) ? "contains no training step"
                                                  : "contains a validation loss but no training step");
  warnings_.finish();
  malformed_.finish();
  summaries_.finish();
  ladder_.tell(sink_);
}

void StepLog::take(const LogLine& line) {
  switch (line.kind) {
    case LogLine::Kind::step:
      return add(counter_.count(line, run_.progress(), outline_.new_block()), line.text, line.number);
    case LogLine::Kind::bar:
      if (const auto first = counter_.follow_bar(line.step, run_.progress(), outline_.new_block()))
        run_.renumber_first(*first);
      return;
    case LogLine::Kind::epoch:
      add(counter_.release_held(), {}, line.number);
      return counter_.begin_epoch(line.step.epoch);
    case LogLine::Kind::bare_loss:
      return take_bare_loss(line);
    case LogLine::Kind::record:
      return take_record(line);
    case LogLine::Kind::summary:
      return summaries_.note(line.number, "skipped: sums up the whole training");
    case LogLine::Kind::part:
      return facts_.read_part(line.text);
    case LogLine::Kind::fence:
      facts_.listen();
      return outline_.fence(line.place);
    case LogLine::Kind::table_header:
      if (run_.progress().open) outline_.table_header();
      return;
    case LogLine::Kind::words:
      return take_words(line);
  }
}

// Takes the loss of the step above that lacks one, or of the epoch that a heading named.
void StepLog::take_bare_loss(const LogLine& line) {
  const RunProgress run = run_.progress();
  if (run.open && run.lacks_loss) return run_.complete_last(line.step.loss);
  const Counted counted = counter_.count_bare_loss(line, run, outline_.new_block());
  if (counted.what == Counted::What::nothing) return take_words(line);
  add(counted, line.text, line.number);
}

// An evaluation between two steps; or a step of a program that logs neither losses nor times.
void StepLog::take_record(const LogLine& line) {
  if (run_.progress().open && !run_.has_only_others()) return log_others(line.step, line.text, line.step.step, line.at);
  PrintedStep step(line.step);
  step.step = line.step.step;
  step.line = line.number;
  step.rank = line.step.rank;
  step.at = line.at;
  add({.what = Counted::What::step, .step = step, .line = &line.step}, line.text, line.number);
}

void StepLog::log_others(const StepLine& line, std::string_view text, std::int64_t step, double at) {
  if (!line.has_others || line.rank > 0) return;  // rank 0 speaks for all
  read_other_pairs(text, line, others_);
  for (const OtherPair& each : others_) run_.log(each.name, each.unit, {step, each.value, at});
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
  if (outline_.begins_run(counted.step.step, run_.progress())) begin_run(*counted.line, text, line);
  if (start_of_steps_.empty() && trimmed(text).size() > 6) start_of_steps_ = trimmed(text).substr(0, 4);
  outline_.step();
  const std::int64_t step = counted.step.step;
  const double at = counted.step.at;
  run_.add(*counted.line, std::move(counted.step));
  log_others(*counted.line, text, step, at);
}

// A validation loss between two blocks is printed before the first step of the second.
void StepLog::validate(const StepLine& line, std::int64_t number) {
  if (run_.progress().open && !(outline_.new_block() && outline_.has_words()))
    run_.validate(line.val_loss, line.tested, number);
  else
    early_val_loss_ = line.val_loss;
}

void StepLog::begin_run(const StepLine& line, std::string_view text, std::int64_t number) {
  end_run();
  const BlockName name = outline_.name();
  facts_.suggest_precision(name.precision);
  Run run;
  run.stage = name.stage;
  run.title = run.changed = name.title;
  run_.begin({.run = std::move(run),
              .facts = facts_.take(),
              .family = std::string(family_of(text, line)),
              .step_is_epoch = counter_.counts_epochs(line)});
  if (!is_missing(early_val_loss_)) run_.validate(std::exchange(early_val_loss_, missing), false, number);
  outline_.begin_run();
}

void StepLog::end_run() {
  if (!run_.progress().open) return;
  ladder_.add_run(run_.stage());
  run_.end();
  counter_.end_run();
}

void StepLog::take_words(const LogLine& line) {
  const std::string_view text = trimmed(line.text);
  if (text.empty()) return;
  const auto item = item_of(line.text);
  const std::string_view heading = heading_of(line.text);
  if (!facts_.attentive() && !item && heading.empty()) return outline_.any_words();
  if (is_warning(text)) return warnings_.note(line.number, "skipped: a warning from a compiler or library");
  const bool code = line.place == LogLine::Place::code;
  if (run_.progress().open && !start_of_steps_.empty() && text.starts_with(start_of_steps_) && !outline_.has_words() &&
      !code && !line.joined)
    malformed_.note(line.number, "not read as a step: " + shortened(text, 80));

  const bool is_fact = facts_.read(line.text);
  if (before_first_run()) facts_.keep_hardware();
  if (speaks_of_resuming(text)) outline_.resume();
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
  if (outline_.leaves_item(item)) leave_item(line);
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
  run.hardware = facts_.hardware();
  run.recipe = LogFacts{}.recipe_json("notes");
  run.printed.unit = "none printed";
  sink_.begin_run(run);
  sink_.end_run(run);
  sink_.note(line, "'" + run.stage + "' has no steps; it is kept as a rung without measurements: " + run.title);
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
