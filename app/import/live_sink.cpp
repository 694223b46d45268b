// Posts the steps of a log to the recorder while it is printed. After a killed tracker, the output is read again from
// its start, and as many steps as are recorded are skipped: reading is deterministic, so these are the same ones.
#include "app/import/live_sink.h"

#include <algorithm>
#include <limits>

namespace stepladder {
void LiveSink::begin_run(const Run& run) {
  steps_are_counted_ = run.printed.steps_are_counted;
  if (begun_ < recorded_.size()) {
    run_ = recorded_[begun_].run;
    skip_ = whole_ ? recorded_[begun_].steps.records : std::numeric_limits<std::int64_t>::max();
  } else if (begun_ > 0) {
    Run next = template_;
    next.uid.clear();
    next.name = template_.name + " " + std::to_string(begun_ + 1);
    next.started_at = unix_now();
    run_ = create_run_(next);
    skip_ = 0;
  }
  ++begun_;
  start(run);
}

void LiveSink::skip_gap() {
  whole_ = true;
  run_ = recorded_.back().run;
  begun_ = recorded_.size();
  skip_ = 0;
  skip_until_ = recorded_.back().steps.last_step;
}

void LiveSink::step(const StepRecord& record) {
  ++steps_;
  if (skip_ > 0) {
    --skip_;
    return;
  }
  if (skip_until_ && record.step <= *skip_until_) return;
  skip_until_.reset();
  StepRecord step = record;
  step.run = run_;
  if (is_missing(step.at)) step.at = unix_now();
  post_(step, steps_are_counted_);
}

// Nothing has to be skipped: insert_points doesn't store recorded points again.
void LiveSink::metric(const Metric& metric, std::span<const MetricPoint> points) {
  if (has_ended(run_)) return;
  for (const MetricPoint& point : points) {
    post_(MetricValues{.run = run_,
                       .step = point.step,
                       .at = is_missing(point.at) ? unix_now() : point.at,
                       .values = {{metric.name, point.value}}},
          steps_are_counted_);
  }
}

bool LiveSink::has_ended(RunId run) const {
  return std::ranges::any_of(recorded_, [&](const RecordedRun& known) { return known.run == run && known.ended; });
}

void LiveSink::end_run(const Run& run) {
  start(run);
  // The last run ends with the program, and with its status.
  if (previous_ && !has_ended(*previous_))
    recorder_.post(RunEnded{.run = *previous_, .at = unix_now(), .status = RunStatus::finished});
  previous_ = run_;
}

void LiveSink::end(RunStatus status, const std::string& reason) {
  if (previous_ && *previous_ != run_ && !has_ended(*previous_))
    recorder_.post(RunEnded{.run = *previous_, .at = unix_now(), .status = RunStatus::finished});
  recorder_.post(RunEnded{.run = run_, .at = unix_now(), .status = status, .reason = reason});
}

void LiveSink::start(const Run& run) {
  if (has_ended(run_)) return;
  recorder_.post(RunStarted{.run = run_,
                            .at = template_.started_at,
                            .tokens_per_step = run.tokens_per_step,
                            .params = run.params,
                            .device = run.device,
                            .hardware = run.hardware,
                            .precision = run.precision,
                            .sync = Sync::unknown,
                            .recipe = run.recipe});
}

}  // namespace stepladder
