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
      for (const int warmup : request_.warmups) {
        for (const std::string& precision : precisions)
          rows_.push_back({.computation = computation, .precision = precision, .warmup = warmup});
      }
    }
    for (CallTimes& row : rows_) first_call(row);
    other_calls();
    return std::move(rows_);
  }

 private:
  // On new weights and an allocator that has none of them, so that the row without warm-up pays for the first call.
  void first_call(CallTimes& row) {
    passes_.reset();
    passes_ = std::make_unique<Passes>(request_);
    for (int call = 0; call < row.warmup; ++call) time(row);
    row.ms.push_back(time(row));
  }

  // The rows take turns, since a machine's speed drifts: rows timed one after the other would differ by the drift.
  // Each call is warm: the model has made all of them before.
  void other_calls() {
    for (const char* const computation : {"forward", "forward_backward"}) {  // what the last first_call didn't do
      for (const CallTimes& row : rows_) {
        if (row.computation == computation && row.warmup == request_.warmups.front()) time(row);
      }
    }
    for (int call = 1; goes_on(call); ++call) {
      for (CallTimes& row : rows_) row.ms.push_back(time(row));
    }
  }

  bool goes_on(int calls) const {
    constexpr int most_calls = 10'000;
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begun_;
    if (calls >= most_calls || (request_.seconds > 0 && elapsed.count() >= request_.seconds)) return false;
    if (calls < request_.calls) return true;
    const auto is_wide = [&](const CallTimes& row) { return standard_error(row) > request_.spread; };
    return request_.spread > 0 && std::any_of(rows_.begin(), rows_.end(), is_wide);
  }

  // Of the mean, as a share of it. The first call isn't like the others.
  static double standard_error(const CallTimes& row) {
    const auto n = static_cast<double>(row.ms.size()) - 1;
    if (n < 2) return 1;
    double sum = 0, squares = 0;
    for (std::size_t i = 1; i < row.ms.size(); ++i) sum += row.ms[i];
    for (std::size_t i = 1; i < row.ms.size(); ++i) squares += (row.ms[i] - sum / n) * (row.ms[i] - sum / n);
    return std::sqrt(squares / (n - 1) / n) / (sum / n);
  }

  double time(const CallTimes& row) {
    if (stop_requested_()) throw std::runtime_error("stopped before all calls were timed");
    return passes_->ms(row);
  }

  const CallTimesRequest& request_;
  const StopRequested& stop_requested_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::unique_ptr<Passes> passes_;
  std::vector<CallTimes> rows_;
};

std::vector<CallTimes> all_times(CallTimesRequest request, const StopRequested& stop_requested) {
  const DeviceReport& report = device_report();
  Recipe& recipe = request.recipe;
  recipe.device = report.resolve(recipe.device);
  if (recipe.threads == 0) recipe.threads = default_threads();
  const RunSettings settings(recipe);
  std::vector<std::string> precisions{"fp32"};
  if (stage_by_id("bf16").unavailable(recipe, report, recipe.device).empty()) precisions.emplace_back("bf16");
  return Experiment(request, stop_requested).run(precisions);
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
