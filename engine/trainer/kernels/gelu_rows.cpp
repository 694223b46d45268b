#include "engine/trainer/kernels/gelu_rows.h"

#include <cmath>

namespace stepladder {
namespace {

constexpr float cubic = 0.044715F;
constexpr float two_slopes = 2 * 0.7978845608F;  // 2 sqrt(2 / pi)

template <class T>
STEPLADDER_IN_LOOP void forward(T* x_then_slope, const float* bias, std::int64_t rows, std::int64_t width, T* after) {
  for (std::int64_t row = 0; row < rows; ++row, x_then_slope += width, after += width) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      const float x = load(x_then_slope[i]) + bias[i], square = x * x;
      const float y = two_slopes * x * (1 + cubic * square);
      const float e = exp_of_negative(-std::abs(y));  // which cannot overflow
      const float larger = 1.0F / (1.0F + e);         // sigmoid of |y|
      const float s = y < 0 ? e * larger : larger;    // sigmoid of y; its slope is e larger^2 for both signs
      store(after[i], x * s);
      store(x_then_slope[i], s + x * (e * larger * larger) * two_slopes * (1 + 3 * cubic * square));
    }
  }
}

template <class T>
STEPLADDER_IN_LOOP void backward(const T* slope, std::int64_t rows, std::int64_t width, T* gradient, float* d_bias) {
  for (std::int64_t row = 0; row < rows; ++row, slope += width, gradient += width) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      const float d = load(gradient[i]) * load(slope[i]);
      store(gradient[i], d);
      d_bias[i] += d;
    }
  }
}

}  // namespace

STEPLADDER_FOR_EACH_CPU
void gelu_rows(float* before_then_slope, const float* bias, std::int64_t rows, std::int64_t width, float* after) {
  forward(before_then_slope, bias, rows, width, after);
}

STEPLADDER_FOR_EACH_CPU
void gelu_rows(Bf16* before_then_slope, const float* bias, std::int64_t rows, std::int64_t width, Bf16* after) {
  forward(before_then_slope, bias, rows, width, after);
}

STEPLADDER_FOR_EACH_CPU
void gelu_backward_rows(const float* slope, std::int64_t rows, std::int64_t width, float* gradient, float* d_bias) {
  backward(slope, rows, width, gradient, d_bias);
}

STEPLADDER_FOR_EACH_CPU
void gelu_backward_rows(const Bf16* slope, std::int64_t rows, std::int64_t width, Bf16* gradient, float* d_bias) {
  backward(slope, rows, width, gradient, d_bias);
}

}  // namespace stepladder
