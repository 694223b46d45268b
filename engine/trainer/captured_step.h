// A whole training step as one graph: clearing gradients, forward, backward, clipping and update are recorded once and
// replayed. Values that change from step to step are in tensors that stay in the same memory: the tokens here, the
// optimiser's numbers in AdamW::prepare_replay.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/recipe.h"
#include "engine/trainer/optimizer.h"
#include "engine/trainer/step_graph.h"

namespace stepladder {

// One micro-batch, (B, T) each.
struct Tokens {
  at::Tensor inputs, targets;
};

// A step's results for its record: the mean loss over its micro-batches and, if gradients are clipped, their norm
// before; both (), on the device.
struct StepTensors {
  at::Tensor loss, norm;
};

using TokensOf = std::function<Tokens(int micro)>;
// Writes a micro-batch into tensors that stay where they are.
using FillTokens = std::function<void(int micro, const Tokens& place)>;
// All that a step does after AdamW::begin_step; asks for the micro-batches in order.
using StepWork = std::function<StepTensors(const TokensOf&)>;

class CapturedStep {
 public:
  // `work` is called by `capture` only. `optimizer` must outlive this.
  CapturedStep(std::unique_ptr<StepGraph> graph, const Recipe& recipe, at::Device device, AdamW& optimizer,
               StepWork work);

  // Runs the three steps after step `done` directly, records the step, and compares three replays with the direct
  // steps: each must have the same loss and gradient norm. `state` is everything that training changes, weights and
  // moments; it is restored. Throws a sentence if the step cannot be captured or a replay differs.
  void capture(std::int64_t done, const std::function<void(std::int64_t step, int micro, const Tokens& place)>& fill,
               const std::vector<at::Tensor>& state);

  // Puts a step's tokens where the graph reads them.
  void load(const FillTokens& fill);

  // Starts the step with the loaded tokens. Returns the same two tensors each time; the device may not have written
  // them yet.
  const StepTensors& replay();

 private:
  struct Figures {
    double loss, norm;
  };
  Figures figures() const;  // waits for the device
  void hold_against(const Figures& direct, const Figures& replayed, std::int64_t step) const;

  const Recipe recipe_;
  AdamW& optimizer_;
  const StepWork work_;
  std::vector<Tokens> tokens_;  // of each micro-batch, where the graph reads them
  StepTensors result_;
  const std::unique_ptr<StepGraph> graph_;
};

}  // namespace stepladder
