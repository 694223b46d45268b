// One way to take a run's training steps. The trainer calls this interface and doesn't know which way a run has;
// make_step.h chooses it by recipe and device:
//   AutogradStep  LibTorch's autograd over the model's own operations
//   DeviceStep    the same, with the forward and backward pass by kernels of our own, on an NVIDIA GPU
//   CapturedStep  one of these two, recorded once as a graph and replayed by one call
//   PlannedStep   the plan of engine/trainer/plan/, on a CPU
// Not thread-safe: the training thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "engine/trainer/optimizer.h"
#include "engine/trainer/parallel/data_parallel.h"
#include "engine/trainer/step_tensors.h"
#include "storage/records.h"

namespace stepladder {

class Step {
 public:
  using Mark = std::function<void(double StepParts::*part)>;

  virtual ~Step() = default;

  // The optimiser of the model's parameters, which the step owns.
  virtual AdamW& optimizer() = 0;

  // The gradients that DataParallel must average.
  virtual DataParallel::Gradients gradients() const { return DataParallel::Gradients::autograd; }

  // Compiles, verifies and captures what the step needs. Called once, when weights, moments and the optimiser's number
  // of updates are those after step `done`; leaves them so. Returns how long the setup took in milliseconds, `missing`
  // if there is none to speak of. Throws a sentence if the step would not compute what the model's operations do.
  virtual double prepare(std::int64_t done) = 0;

  // Takes a step: reads its micro-batches, computes their gradients and moves the weights. Calls `mark` after each
  // part. On a GPU it only starts the work.
  virtual StepTensors take(std::int64_t step, double lr, const Mark& mark) = 0;

  // L2 norm of the last step's gradients, if its StepTensors have none. Waits for the device.
  virtual double gradient_norm() { return optimizer().gradient_norm().item<double>(); }

  // The mean loss, without moving weights. Waits for the device.
  virtual double loss(const Tokens& tokens) = 0;

  // The same, some rows after the others where the device lacks memory for all at once; throws c10::OutOfMemoryError
  // where it lacks memory for one.
  double loss_within_memory(const Tokens& tokens);

  // Whether `take` starts all its work by one call, so that parts and operators can't be told apart.
  virtual bool is_replayed() const { return false; }

  // From now on LibTorch's observers (ATen/record_function.h) see the step's own kernels too, if it has any: those that
  // the calling thread runs or, with `all`, those of the other workers too, by the observers that the calling thread
  // has at this moment. Between steps.
  enum class Threads { calling, all };
  virtual void show_kernels(Threads) {}

  // What the step chose by timing several ways, a line each: "product qkv, ...: own (own 1 ms, LibTorch 2 ms)".
  virtual std::vector<std::string> choices() const { return {}; }

  // The reason why a library's products failed the check, so that LibTorch's took their place; empty: they didn't.
  virtual std::string without_library() const { return ""; }

 private:
  std::int64_t most_rows_ = std::numeric_limits<std::int64_t>::max();  // whose loss fitted into memory
};

}  // namespace stepladder
