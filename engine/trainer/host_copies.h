// Copies between the host's memory and the device's for which nobody waits: on a GPU they go through pinned memory, so
// that the host prepares the next work while the device still computes.
#pragma once

#include <c10/core/Event.h>
#include <torch/torch.h>

#include <array>
#include <cstddef>
#include <optional>

#include "engine/files/tokens.h"
#include "engine/trainer/step_tensors.h"

namespace stepladder {

// Micro-batches on their way to the device. On a GPU two of them may be under way; the third waits until the first has
// been copied.
class TokenFeed {
 public:
  TokenFeed(at::Device device, std::int64_t seq);

  Tokens to_device(const Batch& batch);                     // into new tensors, (rows, seq)
  void copy_into(const Tokens& place, const Batch& batch);  // into these

 private:
  struct Slot {
    Tokens pinned;
    std::optional<c10::Event> copied;  // when the device has read it
  };
  Tokens staged(const Batch& batch);
  void hand_over();  // the staged tokens' copies have been started

  const at::Device device_;
  const std::int64_t seq_;
  std::array<Slot, 2> slots_;  // of a GPU
  std::size_t next_ = 0;
};

// Reads a step's figures back without a wait of its own: `start` queues the copies behind the step's work, and whoever
// has waited for the step has waited for them.
class FiguresOnHost {
 public:
  explicit FiguresOnHost(at::Device device) : device_(device) {}

  void start(const StepTensors& figures);
  double loss() const { return loss_.item<double>(); }
  double norm() const { return norm_.item<double>(); }  // only if the figures had one

 private:
  at::Tensor copied(const at::Tensor& figure, at::Tensor& pinned) const;

  const at::Device device_;
  at::Tensor pinned_loss_, pinned_norm_, loss_, norm_;
};

}  // namespace stepladder
