// Matrix products of the planned step: small enough to stay in a core's caches,
// on the calling thread, without a tensor or an allocation. Sums are kept in
// float32. Uses no torch.
//
// The right factor is read as panels of 16 columns, so that each step along the
// depth reads one line of the cache: panel p holds B[k][16 p ... 16 p + 15] for
// k = 0, 1, ... and columns beyond the matrix are zero. Weights are packed once
// for all rows that they are multiplied with.
#pragma once

#include <cstdint>

#include "engine/trainer/kernels/row_loops.h"

namespace stepladder {

constexpr std::int64_t panel_columns = 16;

constexpr std::int64_t panel_count(std::int64_t columns) {
  return (columns + panel_columns - 1) / panel_columns;
}

// Elements of a (depth, columns) matrix in panels.
constexpr std::int64_t panel_elements(std::int64_t depth, std::int64_t columns) {
  return panel_count(columns) * panel_columns * depth;
}

// from: (depth, columns), `stride` elements from row to row. Writes
// panel_elements(depth, columns).
void pack_panels(const float* from, std::int64_t stride, std::int64_t depth, std::int64_t columns, float* panels);
void pack_panels(const float* from, std::int64_t stride, std::int64_t depth, std::int64_t columns, Bf16* panels);
void pack_panels(const Bf16* from, std::int64_t stride, std::int64_t depth, std::int64_t columns, float* panels);

// The same of the transpose of `from`, which is (columns, depth).
void pack_transposed(const float* from, std::int64_t stride, std::int64_t depth, std::int64_t columns, float* panels);
void pack_transposed(const float* from, std::int64_t stride, std::int64_t depth, std::int64_t columns, Bf16* panels);
void pack_transposed(const Bf16* from, std::int64_t stride, std::int64_t depth, std::int64_t columns, float* panels);

// C = A B, or C += A B if `add`. A's element (i, k) is left[i left_row + k
// left_depth]; C's rows are `out_row` apart. Each element of C is summed in the
// same order whatever the number of rows, so a product that is split by rows or
// by columns has the same bits.
struct Product {
  std::int64_t rows = 0, columns = 0, depth = 0;
  const float* left = nullptr;
  std::int64_t left_row = 0, left_depth = 1;
  std::int64_t panel_depth = 0;  // the depth for which the panels were packed; 0: `depth`
  float* out = nullptr;
  std::int64_t out_row = 0;
  bool add = false;
};
void multiply(const Product& product, const float* panels);
void multiply(const Product& product, const Bf16* panels);

// The vectors that products are computed by: this CPU's widest. A test may choose narrower ones.
enum class VectorUnit { plain, avx2, avx512 };
VectorUnit vector_unit();
void use_vector_unit(VectorUnit unit);

// The same by vectors of 4, 8 or 16 numbers, whatever this CPU has: the plain, the AVX2 and the AVX-512 variant, for
// tests. Slow.
void multiply_by(int lanes, const Product& product, const float* panels);

}  // namespace stepladder
