#include "storage/importers/logs/step_clock.h"

#include <cmath>
#include <utility>

#include "storage/importers/logs/units.h"

namespace stepladder {
namespace {

constexpr double longest_step_ms = 24 * 3.6e6;

}  // namespace

StepClock::StepClock(InferredUnits units, ImportSink& sink) : units_(std::move(units)), sink_(&sink) {}

void StepClock::take(const PrintedStep& printed) {
  StepRecord step;
  step.step = printed.step;
  step.loss = printed.loss;
  step.val_loss = printed.val_loss;
  step.lr = printed.lr;
  step.grad_norm = printed.grad_norm;
  step.at = printed.at;
  step.tokens = units_.tokens_per_step;

  double time = printed.time, elapsed = units_.clock_is_coarse ? missing : printed.elapsed;
  if (units_.elapsed_is_step && is_missing(time)) time = std::exchange(elapsed, missing);
  if (units_.time_is_clock && is_missing(elapsed)) elapsed = std::exchange(time, missing);
  bool by_clock = false;
  if (!is_missing(time))
    step.dt_ms = time * units_.ms_per_time / units_.per_step;
  else if (by_clock = !is_missing(elapsed); by_clock)
    step.dt_ms = ms_by_clock(printed, elapsed);
  else if (printed.throughput > 0 && std::isfinite(printed.throughput) && units_.rate_to_steps > 0)
    step.dt_ms = ms_by_rate(printed);
  else if (by_clock = units_.stamps_are_clock && !is_missing(printed.at); by_clock)
    step.dt_ms = ms_by_stamp(printed);
  if (step.dt_ms > longest_step_ms) {
    if (!std::exchange(longest_noted_, true))
      sink_->note(printed.line, "skipped the time of step " + std::to_string(printed.step) + ", " +
                                    short_text(step.dt_ms / 1000) + " s: no step takes more than a day");
    step.dt_ms = missing;
  }
  if (!is_missing(step.dt_ms)) {
    ++timed_steps_;
    clocked_steps_ += by_clock ? 1 : 0;
  }
  sink_->step_on_line(step, printed.line);
}

double StepClock::ms_by_clock(const PrintedStep& printed, double elapsed) {
  const double last = std::exchange(last_clock_, elapsed);
  const std::int64_t gap = printed.step - std::exchange(last_clock_step_, printed.step);
  if (is_missing(last)) {
    const bool first = !units_.process_clock && (printed.step == 1 || (printed.step == 0 && !is_missing(printed.loss)));
    return first ? elapsed * units_.ms_per_time : missing;
  }
  if (gap <= 0) return missing;
  if (elapsed >= last) return (elapsed - last) * units_.ms_per_time / static_cast<double>(gap);
  // The clock was reset to zero at the end of a warm-up, so it shows the time since then.
  const double steps = std::isfinite(printed.mean_time) && printed.mean_time > 0
                           ? std::max(1.0, std::round(elapsed / printed.mean_time))
                           : static_cast<double>(gap);
  starts_after_ = printed.step - static_cast<std::int64_t>(steps);
  if (restarts_++ == 0)
    sink_->note(printed.line, "the clock restarts at step " + std::to_string(printed.step) + " (" + short_text(last) +
                                  ", then " + short_text(elapsed) + "), so a warm-up ended there");
  return elapsed * units_.ms_per_time / steps;
}

double StepClock::ms_by_rate(const PrintedStep& printed) {
  if (!std::exchange(rate_noted_, true))
    sink_->note(printed.line, "the log prints no step time; it was computed from the rate, " +
                                  short_text(printed.throughput) + " " + units_.printed.unit);
  return 1000 / (printed.throughput * units_.rate_to_steps);
}

double StepClock::ms_by_stamp(const PrintedStep& printed) {
  const double last = std::exchange(last_clock_, printed.at);
  const std::int64_t gap = printed.step - std::exchange(last_clock_step_, printed.step);
  if (is_missing(last) || gap <= 0 || !(printed.at >= last)) return missing;
  return (printed.at - last) * 1000 / static_cast<double>(gap);
}

}  // namespace stepladder
