// A stand-in for a device's graph, on the CPU.
#pragma once

#include <functional>

#include "engine/trainer/step_graph.h"

namespace stepladder {

// Nothing runs while it records, and a replay runs the same work over the same tensors.
class Repeating : public StepGraph {
 public:
  void record(const std::function<void()>& work) override { work_ = work; }
  void replay() override { work_(); }

 protected:
  std::function<void()> work_;
};

}  // namespace stepladder
