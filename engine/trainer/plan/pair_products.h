// Products of bf16 by bf16 with float32 sums, for CPUs that have instructions for them (AMX's tiles, AVX512-BF16). Such
// an instruction multiplies two neighbours along the depth at once, so the right factor's panels (products.h) hold
// pairs: line q of a panel is B[2 q][c], B[2 q + 1][c] for its 16 columns c, 64 bytes. The depth is filled up with
// zeros to a multiple of 32, the depth of a tile. Uses no torch.
#pragma once

#include <cstdint>

#include "engine/trainer/kernels/row_loops.h"
#include "engine/trainer/plan/products.h"

namespace stepladder {

// The plain ones do the same without the instructions; they are for tests, and slow.
enum class PairUnit { none, plain, avx512_bf16, plain_tiles, amx };

// "AMX"; for none: "own", the products of products.h.
const char* name_of(PairUnit unit);

// The unit of this CPU that multiplies pairs, if the system allows it. none: float32 products are the fastest here.
PairUnit pair_unit();
// Sets the unit, for tests. A plan keeps the one that it found when it was made.
void use_pair_unit(PairUnit unit);

constexpr std::int64_t pair_depth(std::int64_t depth) {
  return (depth + 31) / 32 * 32;
}

// Elements of a (depth, columns) matrix in panels of pairs.
constexpr std::int64_t pair_elements(std::int64_t depth, std::int64_t columns) {
  return panel_count(columns) * panel_columns * pair_depth(depth);
}

// from: (depth, columns), `stride` elements from row to row. Writes pair_elements(depth, columns).
void pack_pairs(const float* from, std::int64_t stride, std::int64_t depth, std::int64_t columns, Bf16* panels);
void pack_pairs(const Bf16* from, std::int64_t stride, std::int64_t depth, std::int64_t columns, Bf16* panels);

// The same of the transpose of `from`, which is (columns, depth).
void pack_pairs_transposed(const float* from, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                           Bf16* panels);
void pack_pairs_transposed(const Bf16* from, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                           Bf16* panels);

// to: (columns, rows), the transpose of `from`, (rows, columns).
void transpose_to_half(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t columns, Bf16* to,
                       std::int64_t to_stride);
void transpose_to_half(const Bf16* from, std::int64_t stride, std::int64_t rows, std::int64_t columns, Bf16* to,
                       std::int64_t to_stride);

// C = A B, or C += A B if `add`: as Product, with A by rows.
struct PairProduct {
  std::int64_t rows = 0, columns = 0, depth = 0;
  const Bf16* left = nullptr;
  std::int64_t left_row = 0;
  std::int64_t panel_depth = 0;  // the depth for which the panels were packed; 0: `depth`
  float* out = nullptr;
  std::int64_t out_row = 0;
  bool add = false;
};
void multiply(const PairProduct& product, const Bf16* panels);
// Multiplies by a unit that this CPU has.
void multiply(const PairProduct& product, const Bf16* panels, PairUnit by);

}  // namespace stepladder
