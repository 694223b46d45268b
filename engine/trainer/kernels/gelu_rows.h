// The loops of the fused MLP: bias and GELU in one pass, and their backward pass with the bias's gradient.
#pragma once

#include <cstdint>

#include "engine/trainer/kernels/row_loops.h"

namespace stepladder {

// after = gelu(before + bias), matrices (rows, width), bias (width). The tanh form (Hendrycks and Gimpel 2016) is
// x sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3): one exponential, from which the slope is nearly free. So the
// slope replaces `before` and is kept for the backward pass.
void gelu_rows(float* before_then_slope, const float* bias, std::int64_t rows, std::int64_t width, float* after);
void gelu_rows(Bf16* before_then_slope, const float* bias, std::int64_t rows, std::int64_t width, Bf16* after);

// In place: the gradient of `after` becomes that of `before`, and its columns' sums are added to d_bias.
void gelu_backward_rows(const float* slope, std::int64_t rows, std::int64_t width, float* gradient, float* d_bias);
void gelu_backward_rows(const Bf16* slope, std::int64_t rows, std::int64_t width, Bf16* gradient, float* d_bias);

}  // namespace stepladder
