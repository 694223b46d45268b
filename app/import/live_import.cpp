#include "app/import/live_import.h"

#include <algorithm>
#include <utility>

namespace stepladder {
namespace {

constexpr std::size_t most_console_bytes = 8 << 20;

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
  if (begun_ > 0) {
    Run next = template_;
    next.name = template_.name + " " + std::to_string(begun_ + 1);
    next.started_at = unix_now();
    run_ = store_.create_run(next);
  }
  ++begun_;
  start(run);
}

void LiveSink::step(const StepRecord& record) {
  StepRecord step = record;
  step.run = run_;
  if (is_missing(step.at)) step.at = unix_now();
  recorder_.post(step);
}

void LiveSink::end_run(const Run& run) {
  start(run);
  // The last run ends with the program, and with its status.
  if (previous_) recorder_.post(RunEnded{.run = *previous_, .at = unix_now(), .status = RunStatus::finished});
  previous_ = run_;
}

void LiveSink::end(RunStatus status, const std::string& reason) {
  if (previous_ && *previous_ != run_)
    recorder_.post(RunEnded{.run = *previous_, .at = unix_now(), .status = RunStatus::finished});
  recorder_.post(RunEnded{.run = run_, .at = unix_now(), .status = status, .reason = reason});
}

void LiveSink::start(const Run& run) {
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

MoreBytes with_console(MoreBytes more, Recorder& recorder, RunId run) {
  return [more = std::move(more), &recorder, run, left = most_console_bytes](auto& piece, auto& size) mutable {
    if (!more(piece, size)) return false;
    const std::size_t take = std::min(left, size);
    if (take > 0) recorder.post(ConsoleText{.run = run, .at = unix_now(), .text = {piece.data(), take}});
    left -= take;
    return true;
  };
}

}  // namespace stepladder
