// The loops of residual add and LayerNorm in one pass. T is float or Bf16, the type of the block's products; the
// residual stream itself is always float32.
#pragma once

#include <cstdint>

#include "engine/trainer/kernels/row_loops.h"

namespace stepladder {

struct NormShape {
  std::int64_t rows, width;
};

// sum = stream + added + added_bias; out = (sum - mean) / sqrt(variance + eps) * weight + bias, mean and variance those
// of a row (Ba et al. 2016). Matrices are (rows, width); weight and biases (width). Writes each row's mean and the
// factor 1 / sqrt(variance + eps), which the backward pass needs.
void add_norm_rows(NormShape shape, const float* stream, const float* added, const float* added_bias,
                   const float* weight, const float* bias, float eps, float* sum, float* out, float* mean,
                   float* factor);
void add_norm_rows(NormShape shape, const float* stream, const Bf16* added, const float* added_bias,
                   const float* weight, const float* bias, float eps, float* sum, Bf16* out, float* mean,
                   float* factor);

// The sums of one thread over its rows, each (width).
struct NormSums {
  float *d_weight, *d_bias, *d_added_bias;
};

// With n = (sum - mean) factor and g = d_out weight: d_sum = later + factor (g - mean(g) - n mean(g n)), where `later`
// is the gradient that reaches the stream from above (null: none). d_sum is the gradient of stream and added alike;
// `d_added` gets it in the block's type (null if that is float32 too). Adds to `sums`.
void add_norm_backward_rows(NormShape shape, const float* d_out, const float* later, const float* sum,
                            const float* mean, const float* factor, const float* weight, float* d_sum, float* d_added,
                            NormSums sums);
void add_norm_backward_rows(NormShape shape, const Bf16* d_out, const float* later, const float* sum, const float* mean,
                            const float* factor, const float* weight, float* d_sum, Bf16* d_added, NormSums sums);

}  // namespace stepladder
