// GPT-2's GELU (Hendrycks and Gimpel 2016, the tanh form) with the bias of the product before it. The backward pass
// computes the tanh again, which costs less than reading a kept slope.
#include "engine/kernels/common.cuh"

// tanh(u) for u = sqrt(2 / pi) (x + 0.044715 x^3), by one exponential; exact at both infinities.
__device__ inline float gelu_tanh(float x) {
  const float u = 0.7978845608f * (x + 0.044715f * x * x * x);
  return 1.0f - 2.0f / (__expf(2.0f * u) + 1.0f);
}

// after = gelu(pre + bias), a row a block; `bias` may be null.
KERNEL __launch_bounds__(1024) gelu(const element* pre, const float* bias, element* after, int columns) {
  const int64 row = blockIdx.x;
  for (int first = 4 * static_cast<int>(threadIdx.x); first < columns; first += 4 * static_cast<int>(blockDim.x)) {
    float x[4], shift[4] = {};
    read_four(pre + row * columns, first, columns, x);
    if (bias) read_four(bias, first, columns, shift);
    for (int i = 0; i < 4; ++i) {
      x[i] += shift[i];
      x[i] *= 0.5f * (1.0f + gelu_tanh(x[i]));
    }
    write_four(after + row * columns, first, columns, x);
  }
}

// Turns the gradient of `after` into that of `pre`, in place.
KERNEL __launch_bounds__(1024) gelu_backward(const element* pre, const float* bias, element* d, int columns) {
  const int64 row = blockIdx.x;
  for (int first = 4 * static_cast<int>(threadIdx.x); first < columns; first += 4 * static_cast<int>(blockDim.x)) {
    float x[4], shift[4] = {}, gradient[4];
    read_four(pre + row * columns, first, columns, x);
    if (bias) read_four(bias, first, columns, shift);
    read_four(d + row * columns, first, columns, gradient);
    for (int i = 0; i < 4; ++i) {
      x[i] += shift[i];
      const float t = gelu_tanh(x[i]);
      const float slope_of_u = 0.7978845608f * (1.0f + 3.0f * 0.044715f * x[i] * x[i]);
      gradient[i] *= 0.5f * (1.0f + t) + 0.5f * x[i] * (1.0f - t * t) * slope_of_u;
    }
    write_four(d + row * columns, first, columns, gradient);
  }
}
