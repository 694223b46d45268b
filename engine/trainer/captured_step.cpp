#include "engine/trainer/captured_step.h"

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

CapturedStep::CapturedStep(std::unique_ptr<StepGraph> graph, const Recipe& recipe, at::Device device, AdamW& optimizer,
                           StepWork work)
    : recipe_(recipe), optimizer_(optimizer), work_(std::move(work)), graph_(std::move(graph)) {
  const auto place = [&] { return at::zeros({recipe.batch, recipe.seq}, at::device(device).dtype(at::kLong)); };
  for (int micro = 0; micro < recipe.grad_accum; ++micro) tokens_.push_back({place(), place()});
}

void CapturedStep::capture(std::int64_t done, const std::function<void(std::int64_t, int, const Tokens&)>& fill,
                           const std::vector<at::Tensor>& state) {
  const std::int64_t updates = optimizer_.steps();
  std::vector<at::Tensor> saved;  // on the CPU: the device may lack memory for a second copy
  for (const at::Tensor& tensor : state) saved.push_back(tensor.detach().to(at::kCPU, false, /*copy=*/true));
  const auto restore = [&] {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < state.size(); ++i) at::Tensor(state[i]).copy_(saved[i]);
    optimizer_.set_steps(updates);
  };
  const auto work = [this] { result_ = work_([this](int micro) { return tokens_[static_cast<std::size_t>(micro)]; }); };
  const auto begin = [&](std::int64_t step) {
    load([&](int micro, const Tokens& place) { fill(step, micro, place); });
    optimizer_.begin_step(learning_rate(recipe_, step));
  };

  optimizer_.prepare_replay();
  std::vector<Figures> direct;
  for (std::int64_t step = done + 1; step <= done + warm_up_steps; ++step) {
    begin(step);
    work();
    direct.push_back(figures());
  }
  result_ = {};
  optimizer_.clear_gradients();  // the graph's gradients get their own memory
  try {
    graph_->record(work);
  } catch (const c10::Error& error) {
    throw std::runtime_error("compile: the step cannot be captured: " + std::string(error.what_without_backtrace()));
  }
  restore();
  for (std::int64_t step = done + 1; step <= done + warm_up_steps; ++step) {
    begin(step);
    replay();
    hold_against(direct[static_cast<std::size_t>(step - done - 1)], figures(), step);
  }
  restore();
}

void CapturedStep::load(const FillTokens& fill) {
  for (std::size_t micro = 0; micro < tokens_.size(); ++micro) fill(static_cast<int>(micro), tokens_[micro]);
}

const StepTensors& CapturedStep::replay() {
  graph_->replay();
  return result_;
}

CapturedStep::Figures CapturedStep::figures() const {
  const at::Tensor norm = result_.norm.defined() ? result_.norm : optimizer_.gradient_norm();
  return {result_.loss.item<double>(), norm.item<double>()};
}

void CapturedStep::hold_against(const Figures& direct, const Figures& replayed, std::int64_t step) const {
  const double tolerance = precision_name(recipe_) == "fp32" ? 1e-4 : 2e-2;  // relative
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
