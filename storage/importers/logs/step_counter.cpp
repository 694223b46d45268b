// Numbers steps that don't print a number, or that count from 0 in every epoch: bars, dictionaries, Keras, bare losses.
// Each case has a function, chosen in `number`; state is per run and reset in end_run. The comments quote the output
// that each rule is for.
#include "storage/importers/logs/step_counter.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stepladder {
namespace {

constexpr std::int64_t largest_step = 1'000'000'000'000'000;
constexpr double most_epochs = 1e9;

void read_printed(const LogLine& line, PrintedStep& printed) {
  static_cast<StepValues&>(printed) = line.step;
  printed.line = line.number;
  printed.rank = line.step.rank;
  printed.iteration = line.step.iteration;
  printed.micro = line.step.micro;
  printed.parts = line.step.micro >= 0 ? 1 : 0;
  printed.redrawn = line.step.bar || printed.iteration >= 0;  // the last iteration completes a step
  printed.at = line.at;
  // "step 250: train loss 3.1, val loss 3.2": both are means of an evaluation.
  const bool evaluation = !is_missing(line.step.loss) && !is_missing(line.step.val_loss) && line.step.named_loss &&
                          is_missing(line.step.time) && is_missing(line.step.elapsed) &&
                          is_missing(line.step.throughput);
  printed.estimate = evaluation || line.step.epoch_mean;
}

void take_as_step(std::int64_t step, Counted& counted) {
  counted.step.step = step;
  counted.what = step >= 0 && step <= largest_step ? Counted::What::step : Counted::What::out_of_bounds;
}

// Takes a line without a step number: its validation loss, if any, belongs to a step that was counted before.
void take_as_validation(const StepLine& line, Counted& counted) {
  if (!is_missing(line.val_loss)) counted.what = Counted::What::validation;
}

bool is_whole_epoch(double epoch) {
  return !is_missing(epoch) && epoch >= 0 && epoch == std::floor(epoch);
}

}  // namespace

Counted StepCounter::count(const LogLine& line, const RunProgress& run, bool new_block) {
  Counted counted{.line = &line.step};
  PrintedStep& printed = counted.step;
  read_printed(line, printed);
  // Some repeat the last validation loss on every line.
  if (!is_missing(printed.val_loss) && !printed.estimate) {
    if (!is_missing(printed.loss) && line.step.val_loss == repeated_val_loss_) printed.val_loss = missing;
    repeated_val_loss_ = line.step.val_loss;
  }
  number(line.step, run, new_block, counted);
  if (line.step.record && counted.what == Counted::What::step && counted.line == &line.step) time_by_bar(counted);
  if (counted.what == Counted::What::out_of_bounds) epoch_offset_ = 0;
  return counted;
}

void StepCounter::number(const StepLine& line, const RunProgress& run, bool new_block, Counted& counted) {
  if (line.has_step() && line.counts_iterations && iteration_.step > 0 && run.open)
    return number_iteration(line, counted);
  if (line.iteration >= 0 && line.step > 0) iteration_ = {line.iteration, line.step};
  if (line.has_step()) return number_within_epoch(line, run, new_block, counted);
  if (line.batch >= 0 && line.has_loss()) return number_bar(line, new_block, counted);
  const bool has_fraction = !is_missing(line.epoch) && !line.whole_epoch && !is_missing(line.loss);  // "epoch 0.05"
  if (line.record || has_fraction) return number_record(line, run, new_block, counted);
  if (is_whole_epoch(line.epoch) && line.epoch < most_epochs && (!run.open || run.step_is_epoch || new_block))
    return take_as_step(static_cast<std::int64_t>(line.epoch), counted);
  take_as_validation(line, counted);
}

// "iter 48: val loss" below "iter 48 step 12": the number of an iteration, which isn't that of a step here.
void StepCounter::number_iteration(const StepLine& line, Counted& counted) const {
  if (line.step == iteration_.number) return take_as_step(iteration_.step + epoch_offset_, counted);
  const std::int64_t each = iteration_.number % iteration_.step == 0 ? iteration_.number / iteration_.step : 0;
  if (each > 0 && line.step % each == 0) return take_as_step(line.step / each + epoch_offset_, counted);
  take_as_validation(line, counted);
}

// Some count from the start in every epoch.
void StepCounter::number_within_epoch(const StepLine& line, const RunProgress& run, bool new_block, Counted& counted) {
  const std::int64_t step = line.rounded_step > 0 ? exact_step(line, run, new_block) : line.step;
  const double epoch = line.whole_epoch ? line.epoch : is_missing(line.epoch) ? epoch_ : missing;
  if (is_missing(epoch)) {
    epoch_offset_ = 0;
  } else {
    const bool starts_over =
        raw_step_ >= 0 && line.iteration < 0 && (line.whole_epoch ? step <= raw_step_ : step < raw_step_);
    if (!is_missing(offset_epoch_) && epoch > offset_epoch_ && starts_over && run.open && !new_block)
      epoch_offset_ = line.total >= raw_step_ && line.total >= step
                          ? epoch_offset_ + line.total * static_cast<std::int64_t>(epoch - offset_epoch_)
                          : run.last_step + step_gap_ - step;
    offset_epoch_ = epoch;
  }
  if (raw_step_ >= 0 && step > raw_step_) step_gap_ = step - raw_step_;
  raw_step_ = step;
  take_as_step(step + epoch_offset_, counted);
}

// "1K" after 600 and 800 is 1000, and the same again 1200: the spacing of the steps before tells.
std::int64_t StepCounter::exact_step(const StepLine& line, const RunProgress& run, bool new_block) const {
  const std::int64_t next = raw_step_ + step_gap_;
  const bool fits = raw_step_ >= 0 && run.open && !new_block && run.steps > 1 &&
                    std::fabs(static_cast<double>(next - line.step)) <= line.rounded_step;
  return fits ? next : line.step;
}

Counted StepCounter::count_bare_loss(const LogLine& line, const RunProgress& run, bool new_block) const {
  if (!is_whole_epoch(epoch_) || epoch_ > most_epochs) return {};
  const auto step = static_cast<std::int64_t>(epoch_);
  if (run.open && !new_block && (!run.step_is_epoch || run.last_step == step)) return {};
  Counted counted{.step = PrintedStep(line.step), .line = &line.step};
  counted.step.line = line.number;
  take_as_step(step, counted);
  return counted;
}

void StepCounter::number_bar(const StepLine& line, bool new_block, Counted& counted) {
  if (is_missing(line.loss)) return take_as_validation(line, counted);  // a bar over the validation set
  // A bar of an epoch starts over with the next; one of the whole training goes on, whatever epoch is beside it.
  const double epoch = is_missing(line.epoch) ? epoch_ : line.epoch;
  LossBar& bar = loss_bar_;
  const bool is_later = !is_missing(epoch) && !is_missing(bar.epoch) && epoch > bar.epoch;
  const bool starts_over =
      bar.last_batch >= 0 &&
      (line.batch < bar.last_batch
           ? is_later || (is_missing(epoch) && !new_block)
           : is_later && is_whole_epoch(epoch) && (line.batch == bar.last_batch || (line.bar && line.epoch_leads)));
  if (new_block && !starts_over && line.batch < bar.last_batch) bar = {};
  if (starts_over) {
    const double epochs = is_later ? std::max(1.0, std::floor(epoch) - std::floor(bar.epoch)) : 1;
    bar.steps_before += static_cast<std::int64_t>(
        std::min(epochs, 1e6) * static_cast<double>(std::min<std::int64_t>(bar.last_total, 1'000'000'000)));
  }
  if (starts_over || is_missing(bar.epoch)) bar.epoch = epoch;
  bar.last_batch = line.batch;
  bar.last_total = line.batches;
  std::int64_t step = bar.steps_before + line.batch;
  if (line.bar && !line.keras) {
    // A bar that shows a loss at 0/N is drawn before its count goes up: 0 is the first step. One that begins an epoch
    // with the loss of the last shows that one's values.
    const bool is_last_ones = line.loss == std::exchange(bar.loss, line.loss) && line.batch == 0;
    if (line.batch == 0 && !is_last_ones) bar.starts_with_loss = true;
    if (bar.starts_with_loss && line.batch == line.batches) return;
    if (bar.starts_with_loss) ++step;
    // Its postfix keeps showing the last validation loss.
    double& val_loss = counted.step.val_loss;
    if (!is_missing(val_loss) && val_loss == std::exchange(bar.val_loss, val_loss)) val_loss = missing;
    if (is_last_ones && !bar.starts_with_loss) {
      if (!is_missing(val_loss)) counted.what = Counted::What::validation;
      return;
    }
  }
  take_as_step(step, counted);
  if (line.keras) hold_unfinished(line, counted);
}

// Keras shows a mean over the epoch so far: only the finished bar is a figure, or the last of an epoch before.
void StepCounter::hold_unfinished(const StepLine& line, Counted& counted) {
  if (line.batch >= line.batches) return held_.reset();
  const HeldBar next{counted.step, line};
  counted = held_ && held_->step.step > next.step.step ? release_held() : Counted{};
  held_ = next;
  held_->line.rate_text = held_->line.val_set = {};
}

Counted StepCounter::release_held() {
  if (!held_) return {};
  timed_ = held_->line;
  Counted counted{.step = held_->step, .line = &timed_};
  held_.reset();
  take_as_step(counted.step.step, counted);
  if (counted.what == Counted::What::out_of_bounds) epoch_offset_ = 0;
  return counted;
}

// Numbers a dictionary without a step: by the bar next to it, else as the next step.
void StepCounter::number_record(const StepLine& line, const RunProgress& run, bool new_block, Counted& counted) {
  if (is_missing(line.loss)) return take_as_validation(line, counted);
  const bool is_same_run = run.open && !new_block;
  record_epoch_ = line.epoch;
  // A bar of each epoch begins again too.
  bar_.starts_over &= is_same_run && !(line.epoch > bar_.epoch);
  const std::int64_t last = last_record(run, is_same_run);
  bar_.starts_over &= bar_.step <= run.last_step;
  if (placed_ >= 0) {
    if (placed_ > last) step_gap_ = placed_ - last;
    bar_.last = placed_;
    return take_as_step(std::exchange(placed_, -1), counted);
  }
  if (is_same_run && run.lacks_loss) return take_as_step(last, counted);
  // A record for each epoch, while they count up.
  if (!is_same_run) records_are_epochs_ = line.whole_epoch && bar_.step < 0;
  records_are_epochs_ &= line.whole_epoch && line.epoch < most_epochs &&
                         !(is_same_run && line.epoch <= static_cast<double>(run.last_step));
  if (records_are_epochs_) return take_as_step(static_cast<std::int64_t>(line.epoch), counted);
  if (bar_.step > last) {
    step_gap_ = bar_.step - last;
    bar_.last = bar_.step;
    return take_as_step(bar_.step, counted);
  }
  take_as_step(last + (bar_.step >= 0 ? step_gap_ : 1), counted);
}

// Several records between two bars were buffered, so the bar in front has passed them, perhaps by some steps; or the
// bar behind has. Records are evenly spaced, from the first step on and to the last, and their steps are in proportion
// to the printed epochs. `is_certain` is false if several spacings agree with all of that, or none does.
std::vector<std::int64_t> StepCounter::place(std::span<const double> epochs, std::int64_t next_bar,
                                             const RunProgress& run, bool new_block, bool& is_certain) const {
  const bool is_same_run = run.open && !new_block;
  const std::int64_t last = last_record(run, is_same_run), before = is_same_run && !bar_.starts_over ? run.steps : 0;
  const auto count = std::ssize(epochs);
  const auto spaced = [&](std::int64_t from, std::int64_t gap) {
    std::vector<std::int64_t> steps;
    for (std::int64_t i = 1; i <= count; ++i) steps.push_back(from + gap * i);
    const double per_step = epochs.back() / static_cast<double>(steps.back());
    for (std::size_t i = 0; i < epochs.size(); ++i)  // epochs are rounded to one digit or more
      if (is_missing(epochs[i]) || std::fabs(epochs[i] - per_step * static_cast<double>(steps[i])) > 0.06 * epochs[0])
        return std::vector<std::int64_t>();
    return steps;
  };
  const std::int64_t known = before > 0 && last % before == 0 ? last / before : 0;
  constexpr std::int64_t most_tried = 100'000;
  const std::int64_t all = before + count, least = bar_.step / (all + 1) + 1;
  const std::int64_t most = std::min(bar_.step / all, least + most_tried);
  const auto fits = [&](std::int64_t gap) { return gap > 0 && (known == 0 || gap == known) && bar_.total % gap == 0; };
  std::vector<std::int64_t> gaps;
  for (std::int64_t gap = std::max<std::int64_t>(least, 1); gap <= most && std::ssize(gaps) < 100; ++gap)
    if (fits(gap) && last == before * gap && !spaced(last, gap).empty()) gaps.push_back(gap);
  if (gaps.size() > 1 && std::ranges::count_if(gaps, [](std::int64_t gap) { return gap % 5 == 0; }) == 1)
    std::erase_if(gaps, [](std::int64_t gap) { return gap % 5 != 0; });  // as people choose them
  is_certain = gaps.size() == 1;
  if (!gaps.empty()) return spaced(last, gaps.back());
  // Spaced from the bar before to this one, or to the next.
  for (const auto& [from, to] : {std::pair(last, bar_.step), std::pair(std::max(last, bar_.step), next_bar)}) {
    if (to <= from || (to - from) % count != 0) continue;
    std::vector<std::int64_t> steps = spaced(from, (to - from) / count);
    is_certain = !steps.empty();
    if (is_certain) return steps;
  }
  const std::int64_t end = bar_.step - last >= count ? bar_.step : last + count;
  std::vector<std::int64_t> steps;
  for (std::int64_t i = 1; i <= count; ++i) steps.push_back(last + (end - last) * i / count);
  return steps;
}

// A dictionary may be printed before or after the bar moves on. It is that step whose spacing is that of the
// steps before, at which all steps make whole epochs, or whose number is rounder.
std::int64_t StepCounter::place_one(double epoch, std::int64_t next_bar, const RunProgress& run, bool new_block) const {
  const std::int64_t last = last_record(run, run.open && !new_block);
  if (next_bar <= last || next_bar == bar_.step) return -1;
  if (bar_.step <= last) return next_bar;
  const auto makes_whole = [&](std::int64_t step) {
    const double per_epoch = static_cast<double>(bar_.total) / static_cast<double>(step), epochs = epoch * per_epoch;
    constexpr double rounding = 0.006, least_clear = 0.2;  // of an epoch with two digits; of its sum
    return rounding * per_epoch < least_clear && std::fabs(epochs - std::round(epochs)) < rounding * per_epoch;
  };
  const auto is_spaced = [&](std::int64_t step) { return run.steps > 1 && step - last == step_gap_; };
  const auto roundness = [](std::int64_t step) {
    for (const std::int64_t unit : {1000, 500, 100, 50, 25, 10, 5})
      if (step % unit == 0) return unit;
    return std::int64_t{1};
  };
  if (is_spaced(bar_.step) != is_spaced(next_bar)) return is_spaced(next_bar) ? next_bar : -1;
  if (makes_whole(bar_.step) != makes_whole(next_bar)) return makes_whole(next_bar) ? next_bar : -1;
  return roundness(next_bar) > roundness(bar_.step) ? next_bar : -1;
}

// A bar that counts the steps of dictionaries times them too.
void StepCounter::time_by_bar(Counted& counted) {
  if (bar_.step < 0 || !is_missing(counted.step.time) || !is_missing(counted.step.elapsed)) return;
  timed_ = *counted.line;
  counted.line = &timed_;
  timed_.time = counted.step.time = bar_.time;
  timed_.time_unit = TimeUnit::s;
  if (is_missing(timed_.throughput)) {
    timed_.throughput = counted.step.throughput = bar_.rate;
    timed_.rate = RateLabel::iterations;
    timed_.rate_text = "it/s";
  } else if (bar_.rate > 0) {
    timed_.time = counted.step.time = 1 / bar_.rate;
  }
}

std::optional<std::int64_t> StepCounter::follow_bar(const StepLine& line, const RunProgress& run, bool new_block) {
  // Downloads and evaluations have bars of their own; only a finished bar is replaced by another.
  if (line.batches != bar_.total && bar_.step != bar_.total && run.open) return std::nullopt;
  // The first bar was printed after the first dictionary, so each shows the step of the dictionary before it.
  const bool behind_first =
      bar_.step < 0 && line.batch > 0 && run.open && !new_block && run.steps == 1 && run.first_step == 1;
  const bool begins_again = line.batches == bar_.total && line.batch == 0 && bar_.step > 0 && bar_.step < bar_.total;
  const bool has_begun_again = line.batches == bar_.total && bar_.starts_over && !begins_again;
  const TrainerBar before = std::exchange(bar_, {.step = line.batch,
                                                 .total = line.batches,
                                                 .rate = line.throughput,
                                                 .time = line.time,
                                                 .starts_over = begins_again || has_begun_again});
  bar_.epoch = begins_again ? record_epoch_ : before.epoch;
  if (has_begun_again) {
    bar_.first = before.first > 0 ? before.first : line.batch;
    bar_.last = before.first > 0 ? before.last : line.batch - 1;
  }
  if (!behind_first) return std::nullopt;
  step_gap_ = line.batch;
  return line.batch;
}

void StepCounter::end_run() {
  epoch_ = offset_epoch_ = repeated_val_loss_ = missing;
  epoch_offset_ = 0;
  raw_step_ = -1;
  step_gap_ = 1;
  iteration_ = {};
  record_epoch_ = missing;
  bar_ = {};
  loss_bar_ = {};
}

}  // namespace stepladder
