// The loop in which the fused classifier spends its own time.
#include "engine/trainer/kernels/softmax_rows.h"

#include <algorithm>
#include <cmath>

#include "engine/trainer/kernels/row_loops.h"

namespace stepladder {

STEPLADDER_FOR_EACH_CPU
void softmax_rows(float* logits, std::int64_t rows, std::int64_t stride, std::int64_t vocab,
                  const std::int64_t* targets, float scale, double* losses) {
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const x = logits + row * stride;
    float highest = x[0];
#pragma omp simd reduction(max : highest)
    for (std::int64_t i = 0; i < vocab; ++i) highest = std::max(highest, x[i]);
    const float target = x[targets[row]] - highest;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < vocab; ++i) {
      const float e = exp_of_negative(x[i] - highest);
      x[i] = e;
      sum += e;
    }
    losses[row] = std::log(static_cast<double>(sum)) - static_cast<double>(target);
    if (scale == 0) continue;
    const float factor = scale / sum;
#pragma omp simd
    for (std::int64_t i = 0; i < vocab; ++i) x[i] *= factor;
    x[targets[row]] -= scale;
    for (std::int64_t i = vocab; i < stride; ++i) x[i] = 0;
  }
}

}  // namespace stepladder
