// Loops of residual add and LayerNorm, compiled once for each kind of vector unit, for float and bf16. Mean and
// variance take two passes over a row in float32. The gradients of weight and biases are added to the caller's `sums`,
// one set for each block of rows.
#include "engine/trainer/kernels/add_norm_rows.h"

#include <cmath>

namespace stepladder {
namespace {

template <class T>
STEPLADDER_IN_LOOP void forward(NormShape shape, const float* stream, const T* added, const float* added_bias,
                                const float* weight, const float* bias, float eps, float* sum, T* out, float* mean,
                                float* factor) {
  const std::int64_t C = shape.width;
  const float share = 1.0F / static_cast<float>(C);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (std::int64_t i = 0; i < C; ++i) {
      const float x = stream[i] + (load(added[i]) + added_bias[i]);
      sum[i] = x;
      total += x;
    }
    const float m = total * share;
    float squares = 0;  // of the differences from the mean: a second pass loses no bits
#pragma omp simd reduction(+ : squares)
    for (std::int64_t i = 0; i < C; ++i) squares += (sum[i] - m) * (sum[i] - m);
    const float f = 1.0F / std::sqrt(squares * share + eps);
#pragma omp simd
    for (std::int64_t i = 0; i < C; ++i) store(out[i], (sum[i] - m) * f * weight[i] + bias[i]);
    mean[row] = m;
    factor[row] = f;
    stream += C, added += C, sum += C, out += C;
  }
}

template <class T>
STEPLADDER_IN_LOOP void backward(NormShape shape, const T* d_out, const float* later, const float* sum,
                                 const float* mean, const float* factor, const float* weight, float* d_sum, T* d_added,
                                 NormSums sums) {
  const std::int64_t C = shape.width;
  const float share = 1.0F / static_cast<float>(C);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const float m = mean[row], f = factor[row];
    float g_total = 0, gn_total = 0;
#pragma omp simd reduction(+ : g_total, gn_total)
    for (std::int64_t i = 0; i < C; ++i) {
      const float d = load(d_out[i]), n = (sum[i] - m) * f;
      sums.d_weight[i] += d * n;
      sums.d_bias[i] += d;
      g_total += d * weight[i];
      gn_total += d * weight[i] * n;
    }
    const float g_mean = g_total * share, gn_mean = gn_total * share;
    const auto from_norm = [&](std::int64_t i) __attribute__((always_inline)) {
      return f * (load(d_out[i]) * weight[i] - g_mean - (sum[i] - m) * f * gn_mean);
    };
    if (later) {
#pragma omp simd
      for (std::int64_t i = 0; i < C; ++i) d_sum[i] = later[i] + from_norm(i);
      later += C;
    } else {
#pragma omp simd
      for (std::int64_t i = 0; i < C; ++i) d_sum[i] = from_norm(i);
    }
#pragma omp simd
    for (std::int64_t i = 0; i < C; ++i) sums.d_added_bias[i] += d_sum[i];
    if (d_added) {
#pragma omp simd
      for (std::int64_t i = 0; i < C; ++i) store(d_added[i], d_sum[i]);
      d_added += C;
    }
    d_out += C, sum += C, d_sum += C;
  }
}

}  // namespace

STEPLADDER_FOR_EACH_CPU
void add_norm_rows(NormShape shape, const float* stream, const float* added, const float* added_bias,
                   const float* weight, const float* bias, float eps, float* sum, float* out, float* mean,
                   float* factor) {
  forward(shape, stream, added, added_bias, weight, bias, eps, sum, out, mean, factor);
}

STEPLADDER_FOR_EACH_CPU
void add_norm_rows(NormShape shape, const float* stream, const Bf16* added, const float* added_bias,
                   const float* weight, const float* bias, float eps, float* sum, Bf16* out, float* mean,
                   float* factor) {
  forward(shape, stream, added, added_bias, weight, bias, eps, sum, out, mean, factor);
}

STEPLADDER_FOR_EACH_CPU
void add_norm_backward_rows(NormShape shape, const float* d_out, const float* later, const float* sum,
                            const float* mean, const float* factor, const float* weight, float* d_sum, float* d_added,
                            NormSums sums) {
  backward(shape, d_out, later, sum, mean, factor, weight, d_sum, d_added, sums);
}

STEPLADDER_FOR_EACH_CPU
void add_norm_backward_rows(NormShape shape, const Bf16* d_out, const float* later, const float* sum, const float* mean,
                            const float* factor, const float* weight, float* d_sum, Bf16* d_added, NormSums sums) {
  backward(shape, d_out, later, sum, mean, factor, weight, d_sum, d_added, sums);
}

}  // namespace stepladder
