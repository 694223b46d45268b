// What can take down a step's work on the device once and start all of it again by a single call. CUDA's is in
// engine/trainer/cuda; tests drive a captured step by a stand-in on the CPU.
#pragma once

#include <functional>

namespace stepladder {

class StepGraph {
 public:
  virtual ~StepGraph() = default;

  // Takes down what `work` starts on the device without letting it run. Tensors that `work` makes and leaves behind
  // keep their memory, and each replay writes them again. `work` must have run before on this thread, so that nothing
  // is set up for the first time, and may not wait for the device. Throws where it cannot be taken down.
  virtual void record(const std::function<void()>& work) = 0;

  // Starts what was taken down; does not wait for it.
  virtual void replay() = 0;
};

}  // namespace stepladder
