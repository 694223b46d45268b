// Observes LibTorch's operators on one thread and sums up their own time: an operator's time minus its callees' and
// minus the watching. Time outside operators becomes a row without a name for each part of the step, so the rows add up
// to the step.
#include "engine/trainer/operator_watch.h"

#include <ATen/record_function.h>
#include <torch/csrc/profiler/util.h>

#include <algorithm>
#include <memory>
#include <string_view>

namespace stepladder {
namespace {

thread_local OperatorWatch* watching = nullptr;

// A row for each of some forty backward functions would hide the operators that they call.
std::string name_of(const at::RecordFunction& function) {
  const std::string_view name = function.name();
  const bool is_autograd =
      function.scope() == at::RecordScope::BACKWARD_FUNCTION || name.starts_with("autograd::engine::");
  return std::string(is_autograd ? "autograd" : name);
}

// The model's parts (profile/model_range.h), whose operators are what counts. Kernels have a namespace.
bool is_range(const at::RecordFunction& function) {
  return function.scope() == at::RecordScope::USER_SCOPE &&
         std::string_view(function.name()).find("::") == std::string_view::npos;
}

std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) {
    if (!text.empty()) text += 'x';
    text += std::to_string(size);
  }
  return text;
}

struct WatchedProduct {
  std::string shapes;
  double flops = missing;
};

WatchedProduct product_of(const at::RecordFunction& function, const std::string& name) {
  if (name != "aten::mm" && name != "aten::addmm" && name != "aten::bmm" && name != "aten::baddbmm") return {};
  const auto facts = torch::profiler::impl::saveExtraArgs(function);
  const auto left = facts.find("mat1_size"), right = facts.find("mat2_size");
  if (left == facts.end() || right == facts.end()) return {};
  return {text_of(left->second.toIntVector()) + " " + text_of(right->second.toIntVector()),
          static_cast<double>(torch::profiler::impl::computeFlops(name, facts))};
}

}  // namespace

struct OperatorWatch::Call : at::ObserverContext {
  std::string name;
  WatchedProduct product;
  Call* caller = nullptr;
  Clock::time_point entered;  // before the watching
  Clock::time_point began;
  Clock::duration others{};  // in the operators that it called, and in watching them
};

OperatorWatch::OperatorWatch() {
  watching = this;
  const auto enter = [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
    // Ignores other threads that work for this one, and operators that end on another thread.
    if (!watching || function.isAsync() || is_range(function)) return nullptr;
    auto call = std::make_unique<Call>();
    call->entered = Clock::now();
    call->name = name_of(function);
    call->product = product_of(function, call->name);
    call->caller = watching->innermost_;
    watching->innermost_ = call.get();
    call->began = Clock::now();
    return call;
  };
  const auto leave = [](const at::RecordFunction&, at::ObserverContext* context) {
    if (context) watching->left(static_cast<Call&>(*context));
  };
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(enter, leave)
          .needsInputs(true)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE}));
}

OperatorWatch::~OperatorWatch() {
  at::removeCallback(handle_);
  watching = nullptr;
}

void OperatorWatch::Totals::add(const Totals& more) {
  calls += more.calls;
  self += more.self;
  if (!is_missing(more.flops)) flops = (is_missing(flops) ? 0 : flops) + more.flops;
}

void OperatorWatch::left(const Call& call) {
  const Clock::time_point now = Clock::now();
  innermost_ = call.caller;
  of_part_[{"", call.name, call.product.shapes}].add(
      {.calls = 1, .self = now - call.began - call.others, .flops = call.product.flops});
  (innermost_ ? innermost_->others : accounted_) += Clock::now() - call.entered;
}

void OperatorWatch::begin_step() {
  ++steps_;
  accounted_ = {};
  part_began_ = Clock::now();
}

void OperatorWatch::end_part(double StepParts::*part) {
  const auto named = std::ranges::find(all_step_parts, part, &NamedStepPart::ms);
  of_part_[{}].self = Clock::now() - part_began_ - accounted_;
  for (const auto& [key, totals] : of_part_) totals_[{std::string(named->name), key.name, key.shapes}].add(totals);
  of_part_.clear();
  accounted_ = {};
  part_began_ = Clock::now();
}

std::vector<OperatorTime> OperatorWatch::operators() const {
  std::vector<OperatorTime> all;
  const double n = steps_;
  for (const auto& [key, totals] : totals_) {
    all.push_back({.part = key.part,
                   .name = key.name,
                   .shapes = key.shapes,
                   .calls = totals.calls / n,
                   .self_ms = std::chrono::duration<double, std::milli>(totals.self).count() / n,
                   .flops = is_missing(totals.flops) ? missing : totals.flops / n});
  }
  return all;
}

}  // namespace stepladder
