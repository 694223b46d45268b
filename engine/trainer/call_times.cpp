// Times forward and forward-backward calls of one model for `stepladder profile`. First calls are timed on fresh
// weights, one row after the other; all further calls take turns, so that a drift of the machine affects every row
// alike.
#include "engine/trainer/call_times.h"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <stdexcept>

#include "engine/stage.h"
#include "engine/trainer/device_probe.h"
#include "engine/trainer/model.h"
#include "engine/trainer/settings.h"
#include "engine/trainer/step_timer.h"

namespace stepladder {
namespace {

using StopRequested = std::function<bool()>;

// One model and batch. Gradients accumulate from call to call, as in the usual script that times passes: so a backward
// pass costs the same each time but the first, which allocates them.
class Passes {
 public:
  explicit Passes(const CallTimesRequest& request)
      : recipe_(request.recipe),
        is_synced_(request.is_synced),
        device_(recipe_.device),
        model_(build_model(recipe_)),
        timer_(device_) {
    model_->to(device_);
    const auto tokens = [&] { return at::randint(recipe_.vocab, {recipe_.batch, recipe_.seq}, at::kLong).to(device_); };
    inputs_ = tokens();
    targets_ = tokens();
  }

  double ms(const CallTimes& row) {
    const Autocast autocast = row.precision == "bf16" ? Autocast::bf16 : Autocast::off;
    if (row.computation == "forward") {
      start();
      const at::Tensor kept = loss(autocast);
      return stop_ms();
    }
    at::Tensor from;
    if (row.computation == "backward") from = loss(autocast);
    start();
    (from.defined() ? from : loss(autocast)).backward();
    return stop_ms();
  }

 private:
  using Clock = std::chrono::steady_clock;

  void start() {
    if (is_synced_) return timer_.start();
    begun_ = Clock::now();
  }
  double stop_ms() {
    return is_synced_ ? timer_.stop_ms() : std::chrono::duration<double, std::milli>(Clock::now() - begun_).count();
  }

  at::Tensor loss(Autocast autocast) const {
    const AutocastScope scope(autocast, device_.type());
    return model_->loss(inputs_, targets_);
  }

  const Recipe& recipe_;
  const bool is_synced_;
  const at::Device device_;
  const std::shared_ptr<Gpt> model_;
  at::Tensor inputs_, targets_;  // (B, T)
  StepTimer timer_;
  Clock::time_point begun_;
};

class Experiment {
 public:
  Experiment(const CallTimesRequest& request, const StopRequested& stop_requested)
      : request_(request), stop_requested_(stop_requested) {}

  std::vector<CallTimes> run(const std::vector<std::string>& precisions) {
    for (const char* const computation : {"forward", "backward", "forward_backward"}) {
      for (const std::string& precision : precisions) {
        calls_of_model_ = -1;
        for (const int warmup : request_.warmups) {
          rows_.push_back({.times = {.computation = computation, .precision = precision, .warmup = warmup}});
          first_call(rows_.back());
        }
      }
    }
    other_calls();
    std::vector<CallTimes> times;
    for (Row& row : rows_) times.push_back(std::move(row.times));
    return times;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Row {
    CallTimes times;
    std::chrono::duration<double> spent{};  // with the calls that aren't timed
  };

  // Uses new weights and an allocator that has none of them, so that the row without warm-up pays for the first call.
  // The row with warm-up continues from there: the other row's call warmed the model up.
  void first_call(Row& row) {
    if (calls_of_model_ < 0 || calls_of_model_ > row.times.warmup) {
      passes_.reset();
      passes_ = std::make_unique<Passes>(request_);
      calls_of_model_ = 0;
    }
    while (calls_of_model_ < row.times.warmup) time(row);
    row.times.ms.push_back(time(row));
  }

  // The rows take turns, since a machine's speed drifts: rows timed one after the other would differ by the drift.
  // Each call is warm: the model has made all of them before.
  void other_calls() {
    for (const char* const computation : {"forward", "forward_backward"}) {  // what the last first_call didn't do
      for (Row& row : rows_) {
        if (row.times.computation == computation && row.times.warmup == request_.warmups.front() && may_go_on(row))
          time(row);
      }
    }
    while (std::ranges::any_of(rows_, [&](const Row& row) { return needs_calls(row); })) {
      for (Row& row : rows_) {
        if (may_go_on(row)) row.times.ms.push_back(time(row));
      }
    }
  }

  // Each row has the same share of the time. So a slow one (bf16 without bf16 units) doesn't use up the others'.
  bool may_go_on(const Row& row) const {
    constexpr std::size_t most_calls = 10'000;
    const double share = request_.seconds / static_cast<double>(rows_.size());
    return row.times.ms.size() < most_calls && (request_.seconds <= 0 || row.spent.count() < share);
  }

  bool needs_calls(const Row& row) const {
    if (!may_go_on(row)) return false;
    return row.times.ms.size() < static_cast<std::size_t>(request_.calls) ||
           (request_.spread > 0 && standard_error(row.times) > request_.spread);
  }

  // The mean's standard error as a share of it, without the first call, which isn't like the others.
  static double standard_error(const CallTimes& row) {
    const auto n = static_cast<double>(row.ms.size()) - 1;
    if (n < 2) return 1;
    double sum = 0, squares = 0;
    for (std::size_t i = 1; i < row.ms.size(); ++i) sum += row.ms[i];
    for (std::size_t i = 1; i < row.ms.size(); ++i) squares += (row.ms[i] - sum / n) * (row.ms[i] - sum / n);
    return std::sqrt(squares / (n - 1) / n) / (sum / n);
  }

  double time(Row& row) {
    if (stop_requested_()) throw std::runtime_error("stopped before all calls were timed");
    const Clock::time_point begun = Clock::now();
    const double ms = passes_->ms(row.times);
    row.spent += Clock::now() - begun;
    ++calls_of_model_;
    return ms;
  }

  const CallTimesRequest& request_;
  const StopRequested& stop_requested_;
  std::unique_ptr<Passes> passes_;
  int calls_of_model_ = -1;  // of one computation in one precision; -1: that of another
  std::vector<Row> rows_;
};

std::vector<std::string> precisions_of(const CallTimesRequest& request, const DeviceReport& report) {
  if (request.precision == "fp32") return {"fp32"};
  const Recipe& recipe = request.recipe;
  const FieldText unavailable = stage_by_id("bf16").unavailable(recipe, report, recipe.device);
  const std::string reason = unavailable.for_command_line();
  if (request.precision == "bf16") {
    if (!reason.empty()) throw std::runtime_error("bf16 can't be timed here: " + reason);
    return {"bf16"};
  }
  return reason.empty() ? std::vector<std::string>{"fp32", "bf16"} : std::vector<std::string>{"fp32"};
}

std::vector<CallTimes> all_times(CallTimesRequest request, const StopRequested& stop_requested) {
  const DeviceReport& report = device_report();
  Recipe& recipe = request.recipe;
  recipe.device = report.resolve(recipe.device);
  if (recipe.threads == 0) recipe.threads = default_threads();
  const RunSettings settings(recipe);
  return Experiment(request, stop_requested).run(precisions_of(request, report));
}

}  // namespace

std::vector<CallTimes> time_calls(const CallTimesRequest& request, const StopRequested& stop_requested) {
  try {
    return all_times(request, stop_requested);
  } catch (const c10::Error& error) {
    throw std::runtime_error(error.what_without_backtrace());
  }
}

}  // namespace stepladder
