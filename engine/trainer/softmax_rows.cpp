// The loop that the fused classifier spends its own time in. Compiled several times, for the vector units that CPUs
// have; the loader picks one.
#include "engine/trainer/softmax_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#if defined(__x86_64__) && defined(__linux__)
#define STEPLADDER_FOR_EACH_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define STEPLADDER_FOR_EACH_CPU
#endif

namespace stepladder {
namespace {

// e^x for x <= 0 within 2 ulp: x = k ln 2 + r with |r| <= ln 2 / 2, a polynomial for e^r (Cephes, expf), and k put into
// the exponent. Below -87 it is 0. No branches, so that loops around it become vector instructions.
inline __attribute__((always_inline)) float exp_of_negative(float x) {
  const float clamped = std::max(x, -87.0F);
  const float round_by_adding = 12582912.0F;  // 1.5 x 2^23: pushes the fraction out of the mantissa
  const float k = (clamped * 1.44269504F + round_by_adding) - round_by_adding;
  const float r = (clamped - k * 0.693359375F) + k * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const float power = std::bit_cast<float>((static_cast<std::int32_t>(k) + 127) << 23);
  return x < -87.0F ? 0.0F : p * power;
}

}  // namespace

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
