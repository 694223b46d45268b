// Shows a kernel of ours to LibTorch's observers: its profiler, and the operator watch.
#pragma once

#include <ATen/record_function.h>

#include <array>

namespace stepladder {

// From its construction to its destruction, on one thread. An observer gets two numbers as the kernel's inputs: its
// floating-point operations (0: not counted, as the memory limits it) and the bytes that it has to read and to write at
// least; storage/traces/operator_work.h reads them in a trace. Costs a few nanoseconds while nobody observes.
class KernelRange {
 public:
  KernelRange(const char* name, double flops, double bytes) : function_(at::RecordScope::USER_SCOPE) {
    if (!function_.isActive()) return;
    inputs_[0] = flops;
    inputs_[1] = bytes;
    function_.before(name, c10::ArrayRef<const c10::IValue>(inputs_.data(), inputs_.size()));
  }
  KernelRange(const KernelRange&) = delete;
  KernelRange& operator=(const KernelRange&) = delete;

 private:
  std::array<c10::IValue, 2> inputs_;
  at::RecordFunction function_;
};

}  // namespace stepladder
