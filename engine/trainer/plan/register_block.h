// The innermost loop of all products on a CPU: a block of sums that stays in registers along the depth, so that each
// number which is read from memory is multiplied several times. Uses no torch.
#pragma once

#include <cstdint>

#include "engine/trainer/kernels/row_loops.h"
#include "engine/trainer/plan/products.h"

namespace stepladder {

// Vectors as GCC and Clang have them: arithmetic on them becomes the instructions of the enclosing function's target.
template <int lanes>
struct Vector;
#define STEPLADDER_VECTOR(LANES)                                                              \
  template <>                                                                                 \
  struct Vector<LANES> {                                                                      \
    using Floats = float __attribute__((vector_size(LANES * 4), aligned(4), may_alias));      \
    using Ints = std::int32_t __attribute__((vector_size(LANES * 4), aligned(4), may_alias)); \
  };
STEPLADDER_VECTOR(4)
STEPLADDER_VECTOR(8)
STEPLADDER_VECTOR(16)
#undef STEPLADDER_VECTOR

template <class V>
STEPLADDER_IN_LOOP V& at(float* place) {
  return reinterpret_cast<V&>(*place);
}
template <class V>
STEPLADDER_IN_LOOP const V& at(const float* place) {
  return reinterpret_cast<const V&>(*place);
}

// A unit multiplies words of 32 bits: here a float32 by a vector of them. Its registers hold `most_rows` rows of sums,
// `most_panels` panels wide.
template <int N, int most_rows_at_once, int most_panels_at_once>
struct FloatUnit {
  static constexpr int lanes = N, values = 1, most_rows = most_rows_at_once, most_panels = most_panels_at_once;
  using Floats = typename Vector<N>::Floats;
  using Right = Floats;
  static STEPLADDER_IN_LOOP void multiply_add(Floats& sum, const float* word, const Right& right) {
    sum += *word * right;
  }
};
using PlainFloats = FloatUnit<4, 3, 1>;
using Avx2Floats = FloatUnit<8, 6, 1>;
using Avx512Floats = FloatUnit<16, 8, 3>;

// out = left right, or out += left right if `add`: `rows` rows and the columns of `vectors` vectors, in panels
// (products.h) `panel_step` words apart. Element (i, k) of the left factor is left[i left_row + k left_depth]. The sums
// of row i are multiplied by factors[i] unless `factors` is null.
template <class Unit, int rows, int vectors>
STEPLADDER_IN_LOOP void multiply_block(const float* left, std::int64_t left_row, std::int64_t left_depth,
                                       std::int64_t depth, const float* right, std::int64_t panel_step, float* out,
                                       std::int64_t out_row, bool add, const float* factors) {
  using Floats = typename Unit::Floats;
  using Right = typename Unit::Right;
  constexpr int in_panel = panel_columns / Unit::lanes;
  Floats sums[rows][vectors] = {};
  for (std::int64_t k = 0; k < depth; ++k) {
    Right line[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v)
      line[v] = at<Right>(right + v / in_panel * panel_step + k * panel_columns + v % in_panel * Unit::lanes);
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
      const float* const word = left + i * left_row + k * left_depth;
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) Unit::multiply_add(sums[i][v], word, line[v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < rows && factors; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) sums[i][v] *= factors[i];
  }
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      Floats& place = at<Floats>(out + i * out_row + v * Unit::lanes);
      place = add ? place + sums[i][v] : sums[i][v];
    }
  }
}

}  // namespace stepladder
