// Holds a run's steps back until the units are settled (65,536 steps, or three if live), then passes them on in order.
// The run begins in the sink only with the first settled step; metrics of the same run wait for that too. end_elsewhere
// works on a copy, for readers that can't wait.
#include "storage/importers/logs/run_assembler.h"

#include <nlohmann/json.hpp>
#include <numbers>

#include "storage/importers/logs/lines/pair_meaning.h"
#include "storage/importers/text.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

// The number of steps that are read before the units are settled.
constexpr std::size_t steps_to_judge_by = 65536;
constexpr std::size_t live_steps_to_judge_by = 3;
constexpr std::size_t passed_on_at_once = 512;
constexpr std::size_t points_at_once = 16'384;

}  // namespace

RunAssembler::RunAssembler(const ImportOptions& options, ImportSink& sink)
    : options_(&options), sink_(&sink), late_(sink, "lines add to steps that were read too long ago") {}

void RunAssembler::begin(RunOpening opening) {
  end();
  *this = RunAssembler(*options_, *sink_);
  opening_ = std::move(opening);
  open_ = true;
}

RunProgress RunAssembler::progress() const {
  return {.open = open_,
          .step_is_epoch = opening_.step_is_epoch,
          .lacks_loss = steps_.lacks_loss(),
          .first_step = steps_.first_step(),
          .last_step = steps_.last_step(),
          .steps = steps_.steps()};
}

void RunAssembler::add(const StepLine& line, PrintedStep&& printed) {
  labels_.read(line);
  labels_.convert(line, progress(), printed);
  printed.tested = line.tested;
  weigh_loss(line);
  if (line.from_perplexity && !std::exchange(perplexity_noted_, true))
    sink_->note(printed.line, "the log prints no loss, so the logarithm of the perplexity is the loss");
  add(printed);
}

void RunAssembler::weigh_loss(const StepLine& line) {
  says_bits_ |= line.in_bits;
  says_nats_ |= line.in_nats;
}

void RunAssembler::log(std::string_view name, std::string_view unit, const MetricPoint& point) {
  auto found = logged_.find(name);
  if (found == logged_.end()) {
    if (logged_.size() >= most_logged_metrics) {
      if (!std::exchange(metrics_noted_, true))
        sink_->note(0, "a run logs more than " + grouped(static_cast<std::int64_t>(most_logged_metrics)) +
                           " metrics; the others were skipped");
      return;
    }
    found = logged_.try_emplace(std::string(name), Logged{.metric = {.name = std::string(name)}}).first;
  }
  if (!unit.empty()) found->second.metric.unit = unit;
  found->second.points.push_back(point);
  found->second.constant.add(point.value);
  if (++points_ >= points_at_once && clock_) pass_on_logged();
}

void RunAssembler::forget_shape(std::int64_t line) {
  LogFacts& facts = opening_.facts;
  facts.batch = facts.global_batch = facts.tokens_printed = facts.seq = 0;
  sink_->note(line, "the batch size or sequence length changes here, so neither gives the tokens of a step");
}

void RunAssembler::keep_unread_times(std::string times, std::int64_t line) {
  unread_times_ = std::move(times);
  unread_line_ = line;
}

void RunAssembler::pass_on_logged() {
  if (points_ == 0) return;
  begin_run();
  for (auto& [name, logged] : logged_) {
    if (logged.points.empty()) continue;
    sink_->metric(logged.metric, logged.points);
    logged.points.clear();
  }
  points_ = 0;
}

void RunAssembler::add(const PrintedStep& printed) {
  lr_.add(printed.lr);
  batch_size_.add(printed.batch_size);
  if (LogFacts& facts = opening_.facts; facts.devices > 0) facts.add_devices(printed.rank + 1);  // "[rank15]" of 8
  measured_ |= !is_missing(printed.loss) || !is_missing(printed.time) || !is_missing(printed.elapsed);
  switch (steps_.add(printed)) {
    case StepMerger::Added::known_step:
      return;
    case StepMerger::Added::too_late:
      return late_.note(printed.line,
                        "skipped: adds to step " + std::to_string(printed.step) + ", which was read too long ago");
    case StepMerger::Added::new_step:
      break;
  }
  const std::size_t held = steps_.held().size();
  const bool is_enough =
      options_->live ? held >= live_steps_to_judge_by && !may_be_a_clock(steps_.held()) : held >= steps_to_judge_by;
  if (!clock_ && is_enough) infer_units();
  if (!clock_) return;
  if (options_->live)
    pass_on(1);
  else if (held >= passed_on_at_once)
    pass_on(StepMerger::held_back);
}

void RunAssembler::validate(double val_loss, bool tested, std::int64_t line) {
  if (!steps_.validate(val_loss, tested))
    late_.note(line, "skipped: a validation loss of a step that was read too long ago");
}

void RunAssembler::renumber_first(std::int64_t step) {
  for (auto& [name, logged] : logged_)
    for (MetricPoint& point : logged.points)
      if (point.step == steps_.first_step()) point.step = step;
  steps_.renumber_first(step);
}

void RunAssembler::infer_units() {
  in_bits_ = says_bits_ && !says_nats_;
  if (in_bits_)
    sink_->note(0, "the perplexities are 2 to the power of the losses, so these are in bits; they are kept in nats");
  if (steps_.held().empty()) {
    clock_.emplace(InferredUnits{}, *sink_);
    return;
  }
  clock_.emplace(infer_run_units({.steps = steps_.held(),
                                  .labels = labels_,
                                  .facts = opening_.facts,
                                  .tokens_per_step = options_->tokens_per_step,
                                  .step_is_epoch = opening_.step_is_epoch,
                                  .is_known_program = !one_of(opening_.family, {"plain", "key=value", "json-lines"})}),
                 *sink_);
  for (const InferredNote& note : clock_->units().notes) sink_->note(note.line, note.text);
}

void RunAssembler::begin_run() {
  if (std::exchange(begun_, true)) return;
  opening_.run.planned_steps = labels_.planned_steps;
  opening_.run.tokens_per_step = clock_->units().tokens_per_step;
  sink_->begin_run(opening_.run);
}

void RunAssembler::pass_on(std::size_t keep) {
  const std::span<PrintedStep> held = steps_.held();
  if (held.size() <= keep) return;
  begin_run();
  const std::size_t count = held.size() - keep;
  for (PrintedStep& step : held.first(count)) {
    for (double* loss : {&step.loss, &step.val_loss})
      if (in_bits_ && !is_missing(*loss)) *loss *= std::numbers::ln2;
    clock_->take(step);
    other_figures_.add_step(step, clock_->units(), labels_.rate);
    keep_rate(step);
    if (step.micro >= 0 && !std::exchange(parts_noted_, true))
      sink_->note(step.line, "step " + std::to_string(step.step) + " has only lines of micro-steps (" +
                                 std::to_string(step.parts) +
                                 "): the mean of their losses and the sum of their times are its own");
  }
  steps_.release(count);
  if (options_->live) pass_on_logged();
}

// The log's facts, and what all of its steps have in common.
std::string RunAssembler::recipe() const {
  Json recipe = opening_.facts.recipe(opening_.family);
  const std::int64_t steps = steps_.steps();
  add_constant(recipe, "lr", lr_, steps);
  add_constant(recipe, "batch_size", batch_size_, steps);
  for (const auto& [name, logged] : logged_)
    if (may_be_setting(name, logged.metric.unit)) add_constant(recipe, name, logged.constant, steps);
  if (steps < 2) return json_text(recipe);
  texts_.for_each([&](const std::string& name, const std::string& text) {
    if (!logged_.contains(name)) add_constant_text(recipe, name, text);  // else it is a number on some lines
  });
  return json_text(recipe);
}

// A rate that gives neither tokens nor a step time would be lost.
void RunAssembler::keep_rate(const PrintedStep& step) {
  const InferredUnits& units = clock_->units();
  if (is_missing(step.throughput) || units.tokens_per_step > 0 || units.rate_is_iterations || step.rank > 0) return;
  std::string name = labels_.rate_text.empty() ? "throughput" : labels_.rate_text;
  if (labels_.per_device && !meaning_of({.key = name}).per_device) name += "_per_device";       // torchtitan's "tps"
  if (const auto known = logged_.find(name); known != logged_.end() && !is_rate_kept_) return;  // logged as it is
  is_rate_kept_ = true;
  log(name, {}, {step.step, step.throughput, step.at});
}

void RunAssembler::end() {
  if (!open_) return;
  open_ = false;
  late_.finish();
  if (const double left = steps_.finish(); !is_missing(left))
    sink_->note(0, "the last validation loss, " + loss_text(left) + ", comes after the last step, which has one");
  if (!clock_) infer_units();
  if (steps_.restarts() > 0)
    sink_->note(0, "steps go back to an earlier one " + std::to_string(steps_.restarts()) +
                       (steps_.restarts() == 1 ? " time" : " times") +
                       "; the newer values count, the older are attempts");
  if (steps_.val_losses_lead())
    sink_->note(0, "a validation loss is printed above step 0, so each of these is of the step below it");
  Run& run = opening_.run;
  const LogFacts& facts = opening_.facts;
  run.recipe = recipe();
  run.device = facts.device;
  run.hardware = options_->hardware.empty() ? facts.hardware : options_->hardware;
  run.precision = facts.precision;
  run.params = options_->params > 0 ? options_->params : facts.params;
  if (run.params > 0) run.model_flops_per_token = 6.0 * static_cast<double>(run.params);
  begin_run();
  pass_on(0);
  if (!unread_times_.empty() && !clock_->timed())
    sink_->note(unread_line_, "no step time was read: \"" + unread_times_ + "\" isn't certainly the time of a step");
  pass_on_logged();
  run.planned_steps = labels_.planned_steps;
  if (run.planned_steps < steps_.last_step()) run.planned_steps = 0;  // those of an epoch
  run.printed = printed_units();
  sink_->end_run(run);
}

void RunAssembler::end_elsewhere(ImportSink& sink) const {
  RunAssembler copy = *this;
  copy.sink_ = &sink;
  if (copy.clock_) copy.clock_->pass_on_to(sink);
  copy.end();
}

PrintedUnits RunAssembler::printed_units() const {
  PrintedUnits printed = clock_->units().printed;
  printed.times_from_clock = clock_->from_clock();
  printed.clock_starts_after = clock_->starts_after(steps_.last_step());
  printed.per_step = other_figures_.per_step(opening_.facts);
  if (!printed.unit.empty()) return printed;
  if (!labels_.rate_text.empty())
    printed.unit = "unknown, printed as " + labels_.rate_text;
  else if (clock_->units().tokens_per_step > 0 && clock_->timed())
    printed.unit = "tokens/s, worked out from tokens per step and step time";
  else
    printed.unit = "none printed";
  return printed;
}

}  // namespace stepladder
