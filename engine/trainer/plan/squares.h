// Squares of 16 x 16 numbers of 32 bits, which packing turns. Uses no torch.
#pragma once

#include <cstdint>

#include "engine/trainer/kernels/row_loops.h"

namespace stepladder {

constexpr std::int64_t square_side = 16;

// Rows become columns, four by four with shuffles. `from` has rows of `from_stride` numbers, `to` rows of `to_stride`:
// numbers of any type of 32 bits.
STEPLADDER_IN_LOOP void turn_square(const void* from_rows, std::int64_t from_stride, void* to_rows,
                                    std::int64_t to_stride) {
  using Four = std::uint32_t __attribute__((vector_size(16), aligned(4), may_alias));
  const auto* const from = static_cast<const std::uint32_t*>(from_rows);
  auto* const to = static_cast<std::uint32_t*>(to_rows);
  for (std::int64_t i = 0; i < square_side; i += 4) {
    for (std::int64_t n = 0; n < square_side; n += 4) {
      const auto row = [&](std::int64_t r) __attribute__((always_inline)) {
        return reinterpret_cast<const Four&>(from[(i + r) * from_stride + n]);
      };
      const Four a = row(0), b = row(1), c = row(2), d = row(3);
      const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5),
                 cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      const auto column = [&](std::int64_t r) __attribute__((always_inline))->Four& {
        return reinterpret_cast<Four&>(to[(n + r) * to_stride + i]);
      };
      column(0) = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
      column(1) = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
      column(2) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
      column(3) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
    }
  }
}

}  // namespace stepladder
