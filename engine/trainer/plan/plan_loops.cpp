// The planned step's elementwise loops, each compiled for every kind of vector unit. Templates must be inlined into
// these versions (STEPLADDER_IN_LOOP), or they run without vector instructions. AdamW keeps the operations' order, so
// that losses stay comparable.
#include "engine/trainer/plan/plan_loops.h"

#include <cmath>
#include <type_traits>

#include "engine/trainer/plan/squares.h"

namespace stepladder {
namespace {

template <class T>
STEPLADDER_IN_LOOP void copied(const T* from, std::int64_t stride, std::int64_t rows, std::int64_t width, float* to,
                               std::int64_t to_stride) {
  for (std::int64_t row = 0; row < rows; ++row, from += stride, to += to_stride) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) to[i] = load(from[i]);
  }
}

template <class T>
STEPLADDER_IN_LOOP void transposed(const T* from, std::int64_t stride, std::int64_t rows, std::int64_t columns,
                                   float* to, std::int64_t to_stride) {
  alignas(64) float square[square_side * square_side];
  for (std::int64_t row = 0; row < rows; row += square_side) {
    const std::int64_t some = std::min(square_side, rows - row);
    for (std::int64_t j = 0; j < columns; j += square_side) {
      const std::int64_t ends = std::min(square_side, columns - j);
      const T* const at = from + row * stride + j;
      float* const place = to + j * to_stride + row;
      if (some < square_side || ends < square_side) {
        for (std::int64_t i = 0; i < some; ++i) {
          for (std::int64_t n = 0; n < ends; ++n) place[n * to_stride + i] = load(at[i * stride + n]);
        }
      } else if constexpr (std::is_same_v<T, float>) {
        turn_square(at, stride, place, to_stride);
      } else {
        copied(at, stride, square_side, square_side, square, square_side);
        turn_square(square, square_side, place, to_stride);
      }
    }
  }
}

template <class T>
STEPLADDER_IN_LOOP void biased(const float* from, const float* bias, std::int64_t rows, std::int64_t width, T* to) {
  if (!bias) {
#pragma omp simd
    for (std::int64_t i = 0; i < rows * width; ++i) store(to[i], from[i]);
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row, from += width, to += width) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) store(to[i], from[i] + bias[i]);
  }
}

template <class T>
STEPLADDER_IN_LOOP void summed(const T* from, std::int64_t rows, std::int64_t width, float* sums) {
  for (std::int64_t row = 0; row < rows; ++row, from += width) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) sums[i] += load(from[i]);
  }
}

template <class T>
STEPLADDER_IN_LOOP void scaled(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t width,
                               const float* row_factors, float factor, T* to, std::int64_t to_stride) {
  for (std::int64_t row = 0; row < rows; ++row, from += from_stride, to += to_stride) {
    const float by = row_factors ? row_factors[row] * factor : factor;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) store(to[i], from[i] * by);
  }
}

template <class T>
STEPLADDER_IN_LOOP void multiplied(const T* a, const T* b, std::int64_t stride, std::int64_t rows, std::int64_t width,
                                   float* sums) {
  // Sixteen sums, so that the loops have a known length and become vectors.
  constexpr std::int64_t lanes = 16;
  for (std::int64_t row = 0; row < rows; ++row, a += stride, b += stride) {
    float part[lanes] = {}, left[lanes], right[lanes];
    std::int64_t i = 0;
    for (; i + lanes <= width; i += lanes) {
      for (std::int64_t n = 0; n < lanes; ++n) left[n] = load(a[i + n]);
      for (std::int64_t n = 0; n < lanes; ++n) right[n] = load(b[i + n]);
      for (std::int64_t n = 0; n < lanes; ++n) part[n] += left[n] * right[n];
    }
    for (std::int64_t n = 0; i + n < width; ++n) part[n] += load(a[i + n]) * load(b[i + n]);
#pragma GCC unroll 4
    for (std::int64_t half = lanes / 2; half > 0; half /= 2) {
      for (std::int64_t n = 0; n < half; ++n) part[n] += part[n + half];
    }
    sums[row] = part[0];
  }
}

}  // namespace

STEPLADDER_FOR_EACH_CPU
void write_scaled(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t width,
                  const float* row_factors, float factor, float* to, std::int64_t to_stride) {
  scaled(from, from_stride, rows, width, row_factors, factor, to, to_stride);
}

STEPLADDER_FOR_EACH_CPU
void write_scaled(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t width,
                  const float* row_factors, float factor, Bf16* to, std::int64_t to_stride) {
  scaled(from, from_stride, rows, width, row_factors, factor, to, to_stride);
}

STEPLADDER_FOR_EACH_CPU
void row_products(const float* a, const float* b, std::int64_t stride, std::int64_t rows, std::int64_t width,
                  float* sums) {
  multiplied(a, b, stride, rows, width, sums);
}

STEPLADDER_FOR_EACH_CPU
void row_products(const Bf16* a, const Bf16* b, std::int64_t stride, std::int64_t rows, std::int64_t width,
                  float* sums) {
  multiplied(a, b, stride, rows, width, sums);
}

STEPLADDER_FOR_EACH_CPU
void copy_rows(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t width, float* to,
               std::int64_t to_stride) {
  copied(from, from_stride, rows, width, to, to_stride);
}

STEPLADDER_FOR_EACH_CPU
void copy_rows(const Bf16* from, std::int64_t from_stride, std::int64_t rows, std::int64_t width, float* to,
               std::int64_t to_stride) {
  copied(from, from_stride, rows, width, to, to_stride);
}

STEPLADDER_FOR_EACH_CPU
void copy_transposed(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns, float* to,
                     std::int64_t to_stride) {
  transposed(from, from_stride, rows, columns, to, to_stride);
}

STEPLADDER_FOR_EACH_CPU
void copy_transposed(const Bf16* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns, float* to,
                     std::int64_t to_stride) {
  transposed(from, from_stride, rows, columns, to, to_stride);
}

STEPLADDER_FOR_EACH_CPU
void add_bias(const float* from, const float* bias, std::int64_t rows, std::int64_t width, float* to) {
  biased(from, bias, rows, width, to);
}

STEPLADDER_FOR_EACH_CPU
void add_bias(const float* from, const float* bias, std::int64_t rows, std::int64_t width, Bf16* to) {
  biased(from, bias, rows, width, to);
}

STEPLADDER_FOR_EACH_CPU
void add_columns(const float* rows_from, std::int64_t rows, std::int64_t width, float* sums) {
  summed(rows_from, rows, width, sums);
}

STEPLADDER_FOR_EACH_CPU
void add_columns(const Bf16* rows_from, std::int64_t rows, std::int64_t width, float* sums) {
  summed(rows_from, rows, width, sums);
}

STEPLADDER_FOR_EACH_CPU
void add(const float* a, const float* b, std::int64_t elements, float* to) {
#pragma omp simd
  for (std::int64_t i = 0; i < elements; ++i) to[i] = a[i] + b[i];
}

STEPLADDER_FOR_EACH_CPU
void accumulate(const float* a, std::int64_t elements, float* to) {
#pragma omp simd
  for (std::int64_t i = 0; i < elements; ++i) to[i] += a[i];
}

STEPLADDER_FOR_EACH_CPU
double sum_of_squares(const float* from, std::int64_t elements) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < elements; ++i) sum += static_cast<double>(from[i]) * static_cast<double>(from[i]);
  return sum;
}

STEPLADDER_FOR_EACH_CPU
void adamw(const AdamWNumbers& numbers, const float* gradient, std::int64_t elements, float* weight, float* average,
           float* squared_average) {
  const AdamWNumbers n = numbers;
#pragma omp simd
  for (std::int64_t i = 0; i < elements; ++i) {
    const float g = gradient[i] * n.gradient_factor;
    const float m = average[i] + n.gradient_share * (g - average[i]);
    const float v = squared_average[i] * n.square_decay + n.square_share * g * g;
    average[i] = m;
    squared_average[i] = v;
    weight[i] = weight[i] * n.decay_factor + n.step_size * (m / (std::sqrt(v) / n.correction_sqrt + n.eps));
  }
}

}  // namespace stepladder
