#include "engine/trainer/call_times.h"

#include <torch/torch.h>

#include <stdexcept>

#include "engine/stage.h"
#include "engine/trainer/device_probe.h"
#include "engine/trainer/model.h"
#include "engine/trainer/settings.h"
#include "engine/trainer/step_timer.h"

namespace stepladder {
namespace {

using StopRequested = std::function<bool()>;

class Passes {
 public:
  Passes(const Recipe& recipe, Autocast autocast)
      : recipe_(recipe), device_(recipe.device), autocast_(autocast), model_(build_model(recipe)), timer_(device_) {
    model_->to(device_);
    const auto tokens = [&] { return at::randint(recipe.vocab, {recipe.batch, recipe.seq}, at::kLong).to(device_); };
    inputs_ = tokens();
    targets_ = tokens();
  }

  double forward_ms() {
    timer_.start();
    const at::Tensor kept = loss();
    return timer_.stop_ms();
  }

  double backward_ms() {
    model_->zero_grad();
    const at::Tensor from = loss();
    timer_.start();
    from.backward();
    return timer_.stop_ms();
  }

  double forward_backward_ms() {
    model_->zero_grad();
    timer_.start();
    loss().backward();
    return timer_.stop_ms();
  }

 private:
  at::Tensor loss() const {
    const AutocastScope scope(autocast_, device_.type());
    return model_->loss(inputs_, targets_);
  }

  const Recipe& recipe_;
  const at::Device device_;
  const Autocast autocast_;
  const std::shared_ptr<Gpt> model_;
  at::Tensor inputs_, targets_;  // (B, T)
  StepTimer timer_;
};

CallTimes timed(const char* computation, double (Passes::*pass)(), const CallTimesRequest& request, Autocast autocast,
                int warmup, const StopRequested& stop_requested) {
  CallTimes times{
      .computation = computation, .precision = autocast == Autocast::bf16 ? "bf16" : "fp32", .warmup = warmup};
  Passes passes(request.recipe, autocast);  // new weights, so that none of this model's data are in the caches
  for (int call = 0; call < warmup + request.calls; ++call) {
    if (stop_requested()) throw std::runtime_error("stopped before all calls were timed");
    const double ms = (passes.*pass)();
    if (call >= warmup) times.ms.push_back(ms);
  }
  return times;
}

std::vector<CallTimes> all_times(CallTimesRequest request, const StopRequested& stop_requested) {
  const DeviceReport& report = device_report();
  Recipe& recipe = request.recipe;
  recipe.device = report.resolve(recipe.device);
  if (recipe.threads == 0) recipe.threads = default_threads();
  const RunSettings settings(recipe);
  std::vector<Autocast> precisions{Autocast::off};
  if (stage_by_id("bf16").unavailable(recipe, report, recipe.device).empty()) precisions.push_back(Autocast::bf16);
  std::vector<CallTimes> all;
  const auto take = [&](const char* computation, double (Passes::*pass)()) {
    for (const int warmup : request.warmups) {
      for (const Autocast autocast : precisions)
        all.push_back(timed(computation, pass, request, autocast, warmup, stop_requested));
    }
  };
  take("forward", &Passes::forward_ms);
  take("backward", &Passes::backward_ms);
  take("forward_backward", &Passes::forward_backward_ms);
  return all;
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
