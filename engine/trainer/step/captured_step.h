// A whole training step as one graph: clearing gradients, forward, backward, clipping and update are recorded once and
// replayed. Values that change from step to step are in tensors that stay in the same memory: the tokens here, the
// optimiser's numbers in AdamW::prepare_replay.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "engine/trainer/step/autograd_step.h"
#include "engine/trainer/step/make_step.h"
#include "engine/trainer/step_graph.h"

namespace stepladder {

class CapturedStep : public Step {
 public:
  using Clock = std::chrono::steady_clock;

  // Captures `direct`, or takes it as it is if `make_graph` makes none. Setup is timed from `compiling_since`, if
  // `direct` has compiled kernels since then, otherwise from the capture.
  CapturedStep(const StepContext& context, std::unique_ptr<AutogradStep> direct, StepGraphMaker make_graph,
               std::optional<Clock::time_point> compiling_since = {});

  AdamW& optimizer() override { return direct_->optimizer(); }
  // Runs the three steps after step `done` directly, records the step, and compares three replays with the direct
  // steps: each must have the same loss and gradient norm. Throws a sentence if the step cannot be captured, if a
  // replay differs, or if validation has no memory beside the graph.
  double prepare(std::int64_t done) override;
  // Returns the same two tensors each time.
  StepTensors take(std::int64_t step, double lr, const Mark& mark) override;
  double loss(const Tokens& tokens) override { return direct_->loss(tokens); }
  bool is_replayed() const override { return graph_ != nullptr; }
  std::vector<std::string> choices() const override { return direct_->choices(); }
  std::string without_library() const override { return direct_->without_library(); }

 private:
  struct Figures {
    double loss, norm;
  };
  void capture(std::int64_t done);
  void validate_once();
  void compute();
  void load(std::int64_t step);
  Figures figures();  // waits for the device
  void compare(const Figures& direct, const Figures& replayed, std::int64_t step) const;

  const StepContext context_;
  const std::unique_ptr<AutogradStep> direct_;
  const StepGraphMaker make_graph_;
  const std::optional<Clock::time_point> compiling_since_;
  std::vector<Tokens> tokens_;  // of each micro-batch, where the graph reads them
  StepTensors result_;
  std::unique_ptr<StepGraph> graph_;  // null: `direct_` takes the steps
};

}  // namespace stepladder
