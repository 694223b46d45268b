// Records a step's work on the device once and starts all of it again by a single call. CUDA's is in
// engine/trainer/cuda; tests drive a captured step with a stand-in on the CPU.
#pragma once

#include <functional>

namespace stepladder {

class StepGraph {
 public:
  virtual ~StepGraph() = default;

  // Records what `work` starts on the device without running it. Tensors that `work` makes and keeps stay in the same
  // memory, and each replay writes them again. `work` must have run before on this thread, so that nothing is set up
  // for the first time, and must not wait for the device. Throws if it cannot be recorded.
  virtual void record(const std::function<void()>& work) = 0;

  // Starts the recorded work; doesn't wait for it.
  virtual void replay() = 0;
};

}  // namespace stepladder
