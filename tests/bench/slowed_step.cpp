// Trains one recipe (JSON) several times in turns, once as it is and once with everything but one kind of operator made
// `factor` times as long, and prints the lower quartile of each one's steps as a line of JSON: other programs only make
// a step slower. What is left of the second step, over the factor, is the step with that kind made `factor` times as
// fast (C. Curtsinger, E. D. Berger, Coz, SOSP 2015). tests/bench/causal.py compares it with what a trace predicts. For
// CPUs and one thread.
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/trainer/trainer.h"
#include "engine/training_job.h"
#include "storage/analysis/step_profile.h"

namespace stepladder {
namespace {

using Clock = std::chrono::steady_clock;

class Slowing;
thread_local Slowing* slowing = nullptr;

// Lets time pass after each operator of another kind, and for each moment between operators.
class Slowing {
 public:
  Slowing(std::string kind, double factor) : kind_(std::move(kind)), factor_(factor) {
    slowing = this;
    const auto enter = [](const at::RecordFunction& function) { return slowing ? slowing->enter(function) : nullptr; };
    const auto leave = [](const at::RecordFunction&, at::ObserverContext* call) {
      if (slowing) slowing->leave(static_cast<Call&>(*call));
    };
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(enter, leave)
                                             .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  }
  ~Slowing() {
    at::removeCallback(handle_);
    slowing = nullptr;
  }
  Slowing(const Slowing&) = delete;
  Slowing& operator=(const Slowing&) = delete;

 private:
  struct Call : at::ObserverContext {
    bool slows = true;
    bool is_backward = false;
    Call* caller = nullptr;
    Clock::time_point began;
    Clock::duration others{};
  };

  std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& function) {
    auto call = std::make_unique<Call>();
    if (!innermost_) spin(Clock::now() - left_);
    call->caller = innermost_;
    call->is_backward = (innermost_ && innermost_->is_backward) || is_autograd(function);
    call->slows = kind_of(function, call->is_backward) != kind_;
    innermost_ = call.get();
    call->began = Clock::now();
    return call;
  }
  void leave(const Call& call) {
    if (call.slows) spin(Clock::now() - call.began - call.others);
    innermost_ = call.caller;
    left_ = Clock::now();
    if (innermost_) innermost_->others += left_ - call.began;
  }
  static bool is_autograd(const at::RecordFunction& function) {
    return function.scope() == at::RecordScope::BACKWARD_FUNCTION ||
           std::string_view(function.name()).starts_with("autograd::engine::");
  }
  // The update, and the making of the batch, which has next to no operators, run without gradients.
  static std::string kind_of(const at::RecordFunction& function, bool is_backward) {
    const bool updates = !at::GradMode::is_enabled() && !is_backward;
    return std::string(to_string(
        stepladder::kind_of(OperatorTime{.part = updates ? "optimizer" : "", .name = std::string(function.name())})));
  }
  void spin(Clock::duration lasted) const {
    const Clock::time_point until = Clock::now() + std::chrono::duration_cast<Clock::duration>(lasted * (factor_ - 1));
    while (Clock::now() < until) {
    }
  }

  std::string kind_;
  double factor_;
  std::uint64_t handle_ = 0;
  Call* innermost_ = nullptr;
  Clock::time_point left_ = Clock::now();
};

double lower_quartile_ms(const Recipe& recipe, const std::string& kind, double factor) {
  std::vector<double> steps;
  RunControl control;
  const Slowing slowing(kind, factor);
  train({.run = 1, .recipe = recipe}, control, [&](const RunEvent& event) {
    if (const auto* step = std::get_if<StepRecord>(&event)) steps.push_back(step->dt_ms);
    if (const auto* ended = std::get_if<RunEnded>(&event); ended && ended->status != RunStatus::finished)
      throw std::runtime_error(ended->reason);
  });
  steps.erase(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 5));
  const auto quartile = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 4);
  std::nth_element(steps.begin(), quartile, steps.end());
  return *quartile;
}

}  // namespace
}  // namespace stepladder

int main(int count, char** arguments) {
  if (count < 5) {
    std::cerr << "usage: slowed_step RECIPE_JSON FACTOR ROUNDS KIND...\n";
    return 2;
  }
  try {
    const stepladder::Recipe recipe = stepladder::recipe_from_json(arguments[1]);
    const double factor = std::stod(arguments[2]);
    for (int round = 0; round < std::stoi(arguments[3]); ++round) {
      for (int i = 4; i < count; ++i) {
        const double plain_ms = stepladder::lower_quartile_ms(recipe, arguments[i], 1);
        const double slowed_ms = stepladder::lower_quartile_ms(recipe, arguments[i], factor);
        std::cout << nlohmann::ordered_json{{"kind", arguments[i]}, {"plain_ms", plain_ms}, {"slowed_ms", slowed_ms}}
                  << std::endl;
      }
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
