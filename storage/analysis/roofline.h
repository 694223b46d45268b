// The roofline (Williams, Waterman and Patterson 2009): a step can be no faster than its arithmetic at the peak, and no
// faster than its bytes at the memory's bandwidth. FLOP per byte decides which of the two is the limit.
#pragma once

#include <cstdint>

#include "storage/analysis/hardware.h"
#include "storage/analysis/mfu.h"
#include "storage/analysis/summary.h"

namespace stepladder {

// One device's share of a step.
struct StepShape {
  ModelShape model;
  std::int64_t tokens = 0;         // of the step on this device; 0: not known
  std::int64_t micro_batches = 1;  // that the tokens are split into; 1 if unknown
  std::int64_t heads = 0;          // for `stores_scores`
  double bytes_per_value = 2;      // of weights and activations in the matrix products
  bool stores_scores = false;      // attention writes its T x T probabilities to memory
  bool known() const;
};

// The shape by the recipe, or by an import's facts. Half-width values if the precision is unknown: fewer bytes, so that
// the intensity is never estimated too low.
StepShape step_shape_of(const Run& run, const Summary& summary);

// Bytes between one device and its memory in a step of AdamW: every tensor counts once for each time that it has to be
// written or read, as if each kernel read its inputs and wrote its outputs perfectly. Real kernels move more; a model
// whose tensors stay in the cache moves less.
struct StepTraffic {
  double weights = 0;      // read in the forward and in the backward pass of each micro-batch
  double gradients = 0;    // 4 N written; from the second micro-batch on read as well
  double optimizer = 0;    // 28 N: reads weight, gradient and two moments, writes weight and moments, 4 bytes each
  double activations = 0;  // written in the forward pass, read in the backward pass; the logits too
  double total() const { return weights + gradients + optimizer + activations; }
};
StepTraffic step_traffic(const StepShape& shape);  // of a known shape

// FLOP per byte, an upper estimate. missing if the shape or the convention's FLOPs are unknown.
double arithmetic_intensity(MfuConvention convention, const StepShape& shape);

// The intensity at which the memory's slope meets the peak, in FLOP per byte.
double ridge_intensity(double peak_tflops, double bandwidth_gb_s);

// min(peak, intensity x bandwidth).
double attainable_tflops(double intensity, double peak_tflops, double bandwidth_gb_s);

}  // namespace stepladder
