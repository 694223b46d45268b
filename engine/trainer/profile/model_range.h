// Names the parts of the model's forward pass for LibTorch's profiler.
#pragma once

#include <ATen/record_function.h>

#include <string>

namespace stepladder {

// A range of the model's forward pass in a trace: "h.3.attn". Costs a few nanoseconds while nobody records.
class ModelRange {
 public:
  // `layer` -1: outside the blocks.
  explicit ModelRange(const char* part, int layer = -1) : function_(at::RecordScope::USER_SCOPE) {
    if (function_.isActive()) function_.before(layer < 0 ? part : "h." + std::to_string(layer) + "." + part);
  }

 private:
  at::RecordFunction function_;
};

}  // namespace stepladder
