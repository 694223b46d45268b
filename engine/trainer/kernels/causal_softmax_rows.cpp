#include "engine/trainer/kernels/causal_softmax_rows.h"

#include <vector>

namespace stepladder {
namespace {

// The number of keys of a row that are processed: the query's own, those before it, and enough after it to fill up a
// vector, which a comparison masks again. They cost less than a scalar tail.
STEPLADDER_IN_LOOP std::int64_t looked_at(std::int64_t query, std::int64_t length) {
  return std::min(length, (query / 16 + 1) * 16);
}

template <class T>
STEPLADDER_IN_LOOP void forward(T* scores, std::int64_t rows, std::int64_t length, float scale, float* kept) {
  for (std::int64_t row = 0; row < rows; ++row, scores += length) {
    const std::int64_t query = row % length, keys = looked_at(query, length);
    float highest = load(scores[0]);
#pragma omp simd reduction(max : highest)
    for (std::int64_t i = 0; i < keys; ++i) {
      const float score = load(scores[i]);
      highest = std::max(highest, i <= query ? score : highest);
    }
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < keys; ++i) {
      const float below = (load(scores[i]) - highest) * scale;
      const float e = exp_of_negative(i <= query ? below : -100.0F);  // behind the query 0
      kept[i] = e;
      sum += e;
    }
    const float factor = 1.0F / sum;
#pragma omp simd
    for (std::int64_t i = 0; i < keys; ++i) store(scores[i], kept[i] * factor);
    std::fill(scores + keys, scores + length, T{});
  }
}

template <class T>
STEPLADDER_IN_LOOP void backward(const T* p, std::int64_t rows, std::int64_t length, float scale, T* gradient) {
  for (std::int64_t row = 0; row < rows; ++row, p += length, gradient += length) {
    const std::int64_t keys = looked_at(row % length, length);  // p is 0 behind the query
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < keys; ++i) sum += load(p[i]) * load(gradient[i]);
#pragma omp simd
    for (std::int64_t i = 0; i < keys; ++i) store(gradient[i], scale * load(p[i]) * (load(gradient[i]) - sum));
    std::fill(gradient + keys, gradient + length, T{});
  }
}

}  // namespace

STEPLADDER_FOR_EACH_CPU
void causal_softmax_rows(float* scores, std::int64_t rows, std::int64_t T, float scale) {
  std::vector<float> row(static_cast<std::size_t>(T));
  forward(scores, rows, T, scale, row.data());
}

STEPLADDER_FOR_EACH_CPU
void causal_softmax_rows(Bf16* scores, std::int64_t rows, std::int64_t T, float scale) {
  std::vector<float> row(static_cast<std::size_t>(T));
  forward(scores, rows, T, scale, row.data());
}

STEPLADDER_FOR_EACH_CPU
void causal_softmax_backward_rows(const float* probabilities, std::int64_t rows, std::int64_t T, float scale,
                                  float* gradient) {
  backward(probabilities, rows, T, scale, gradient);
}

STEPLADDER_FOR_EACH_CPU
void causal_softmax_backward_rows(const Bf16* probabilities, std::int64_t rows, std::int64_t T, float scale,
                                  Bf16* gradient) {
  backward(probabilities, rows, T, scale, gradient);
}

}  // namespace stepladder
