// Captures and verifies before the run is announced, so that the trainer can leave a graph that differs from the step
// for a plainer way.
#include "engine/trainer/step/captured_step.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <stdexcept>
#include <string>

namespace stepladder {
namespace {

// Steps before a capture, as PyTorch's notes on CUDA graphs require ("CUDA semantics", whole-network capture): in their
// first calls libraries set themselves up and choose algorithms, which a graph cannot record.
constexpr int warm_up_steps = 3;

bool agree(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);  // left for the run to detect
  return a == b || std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

}  // namespace

CapturedStep::CapturedStep(const StepContext& context, std::unique_ptr<AutogradStep> direct, StepGraphMaker make_graph,
                           std::optional<Clock::time_point> compiling_since)
    : context_(context),
      direct_(std::move(direct)),
      make_graph_(std::move(make_graph)),
      compiling_since_(compiling_since) {}

double CapturedStep::prepare(std::int64_t done) {
  direct_->prepare(done);
  graph_ = make_graph_(context_.device);
  if (!graph_) return missing;
  const auto began = compiling_since_.value_or(Clock::now());
  capture(done);
  return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

void CapturedStep::capture(std::int64_t done) {
  const auto place = [&] {
    return at::zeros({context_.recipe.batch, context_.recipe.seq}, at::device(context_.device).dtype(at::kLong));
  };
  for (int micro = 0; micro < context_.recipe.grad_accum; ++micro) tokens_.push_back({place(), place()});
  const std::int64_t updates = optimizer().steps();
  const std::vector<at::Tensor> state = direct_->state();
  std::vector<at::Tensor> saved;  // on the CPU: the device may lack memory for a second copy
  for (const at::Tensor& tensor : state) saved.push_back(tensor.detach().to(at::kCPU, false, /*copy=*/true));
  const auto restore = [&] {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < state.size(); ++i) at::Tensor(state[i]).copy_(saved[i]);
    optimizer().set_steps(updates);
  };
  const auto begin = [&](std::int64_t step) {
    load(step);
    optimizer().begin_step(learning_rate(context_.recipe, step));
  };

  optimizer().prepare_replay();
  std::vector<Figures> direct;
  for (std::int64_t step = done + 1; step <= done + warm_up_steps; ++step) {
    begin(step);
    compute();
    direct.push_back(figures());
  }
  result_ = {};
  optimizer().clear_gradients();  // the graph's gradients get their own memory
  try {
    graph_->record([this] { compute(); });
  } catch (const c10::Error& error) {
    throw std::runtime_error("compile: the step cannot be captured: " + std::string(error.what_without_backtrace()));
  }
  validate_once();
  restore();
  for (std::int64_t step = done + 1; step <= done + warm_up_steps; ++step) {
    begin(step);
    graph_->replay();
    compare(direct[static_cast<std::size_t>(step - done - 1)], figures(), step);
  }
  restore();
}

// A graph keeps the memory of all that it computes. Better without it from the start than out of memory later.
void CapturedStep::validate_once() {
  if (context_.recipe.eval_every == 0) return;
  const at::NoGradGuard no_grad;
  try {
    loss_within_memory(context_.batches.validation(0));
  } catch (const c10::OutOfMemoryError& error) {
    throw std::runtime_error("compile: validation has no memory beside the captured step: " +
                             std::string(error.what_without_backtrace()));
  }
}

// The work that the graph records.
void CapturedStep::compute() {
  const auto no_mark = [](double StepParts::*) {};  // a graph's parts cannot be timed
  result_ = direct_->compute([this](int micro) { return tokens_[static_cast<std::size_t>(micro)]; }, no_mark);
}

// Puts a step's tokens where the graph reads them.
void CapturedStep::load(std::int64_t step) {
  for (std::size_t micro = 0; micro < tokens_.size(); ++micro)
    context_.batches.copy_training(step, static_cast<int>(micro), tokens_[micro]);
}

StepTensors CapturedStep::take(std::int64_t step, double lr, const Mark& mark) {
  if (!graph_) return direct_->take(step, lr, mark);
  optimizer().begin_step(lr);
  load(step);
  mark(&StepParts::data_ms);
  graph_->replay();
  return result_;
}

CapturedStep::Figures CapturedStep::figures() {
  return {result_.loss.item<double>(), result_.norm.defined() ? result_.norm.item<double>() : gradient_norm()};
}

void CapturedStep::compare(const Figures& direct, const Figures& replayed, std::int64_t step) const {
  const double tolerance = precision_name(context_.recipe) == "fp32" ? 1e-4 : 2e-2;  // relative
  const auto check = [&](const char* what, double wanted, double found) {
    if (agree(wanted, found, tolerance)) return;
    std::ostringstream sentence;
    sentence << std::setprecision(8) << "compile: the captured step differs from the direct one: replayed, step "
             << step << " has " << what << " of " << found << ", run directly " << wanted;
    throw std::runtime_error(sentence.str());
  };
  check("a loss", direct.loss, replayed.loss);
  check("a gradient norm", direct.norm, replayed.norm);
}

}  // namespace stepladder
