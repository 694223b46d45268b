// Posts the steps of a log to the recorder while it is printed. After a killed tracker, the output is read again from
// its start, and as many steps as are recorded are skipped: reading is deterministic, so these are the same ones.
#include "app/import/live_import.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace stepladder {
namespace {

constexpr std::size_t most_console_bytes = 8 << 20;
constexpr std::size_t most_waiting =
    8'000;  // events; a piece adds a few thousand, and the recorder has room for 16,384

}  // namespace

std::string_view LiveInput::head() {
  if (!head_read_) {
    head_read_ = head_waits_ = true;
    std::size_t size = 0;
    if (more_(piece_, size)) head_.assign(piece_.data(), size);
  }
  return head_;
}

std::string_view LiveInput::next() {
  if (head_read_ && std::exchange(head_waits_, false)) return head_;
  std::size_t size = 0;
  if (!more_(piece_, size)) return {};
  return {piece_.data(), size};
}

void LiveSink::begin_run(const Run& run) {
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
  if (printed_.step)
    printed_.step(step);
  else
    recorder_.post(step);
}

// Nothing has to be skipped: insert_points doesn't store recorded points again.
void LiveSink::metric(const Metric& metric, std::span<const MetricPoint> points) {
  if (has_ended(run_)) return;
  for (const MetricPoint& point : points) {
    const MetricValues values{.run = run_,
                              .step = point.step,
                              .at = is_missing(point.at) ? unix_now() : point.at,
                              .values = {{metric.name, point.value}}};
    if (printed_.values)
      printed_.values(values);
    else
      recorder_.post(values);
  }
}

bool LiveSink::has_ended(RunId run) const {
  return std::any_of(recorded_.begin(), recorded_.end(),
                     [&](const RecordedRun& known) { return known.run == run && known.ended; });
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

MoreBytes with_console(MoreBytes more, Recorder& recorder, RunId run, std::size_t recorded) {
  return [more = std::move(more), &recorder, run, left = most_console_bytes, recorded](std::vector<char>& piece,
                                                                                       std::size_t& size) mutable {
    if (!more(piece, size)) return false;
    const std::size_t take = std::min(left, size);
    const std::size_t skip = std::min(recorded, take);
    if (take > skip)
      recorder.post(ConsoleText{.run = run, .at = unix_now(), .text = {piece.data() + skip, take - skip}});
    left -= take;
    recorded -= skip;
    return true;
  };
}

MoreBytes with_patience(MoreBytes more, Recorder& recorder, std::function<bool()> gives_up) {
  return [more = std::move(more), &recorder, gives_up = std::move(gives_up)](auto& piece, auto& size) {
    while (recorder.waiting() > most_waiting && !gives_up()) recorder.flush(std::chrono::milliseconds(200));
    return !gives_up() && more(piece, size);
  };
}

}  // namespace stepladder
