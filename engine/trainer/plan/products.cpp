// float32 products over packed panels, blocked for the caches, with variants for AVX-512, AVX2 and plain vectors that
// are picked once by the CPU. Each element of C is summed in the same order whatever the split, which the plan's
// reproducible bits depend on.
#include "engine/trainer/plan/products.h"

#include <algorithm>
#include <cstring>

#include "engine/trainer/plan/register_block.h"
#include "engine/trainer/plan/squares.h"

namespace stepladder {
namespace {

// A block of the depth for which two panels (32 KB) stay in the first-level cache while all rows pass them.
constexpr std::int64_t depth_block = 256;
// Panels whose blocks (16 x 16 KB) stay in the second-level cache.
constexpr std::int64_t panel_block = 16;

// Operands of a product with one panel or several, for a piece of the depth. `ends` of the panels' columns are in C.
struct Piece {
  const float* left;
  std::int64_t left_row, left_depth, depth;
  const float* panels;
  std::int64_t panel_step;
  float* out;
  std::int64_t out_row, ends;
  bool add;
};

template <class Unit, int rows, int panels>
STEPLADDER_IN_LOOP void block(const Piece& p) {
  constexpr std::int64_t width = panels * panel_columns;
  // Sums beyond C are written here.
  alignas(64) float aside[rows * width];
  const bool beyond = p.ends < width;
  // Sums are written after the loop: their lines of the cache arrive meanwhile.
  for (int i = 0; i < rows && !beyond; ++i) {
    for (int n = 0; n < panels; ++n) __builtin_prefetch(p.out + i * p.out_row + n * panel_columns, 1);
  }
  // A step of 1 along the rows or the depth is a constant.
  const auto multiply = [&](std::int64_t left_row, std::int64_t left_depth) __attribute__((always_inline)) {
    multiply_block<Unit, rows, width / Unit::lanes>(p.left, left_row, left_depth, p.depth, p.panels, p.panel_step,
                                                    beyond ? aside : p.out, beyond ? width : p.out_row,
                                                    p.add && !beyond, nullptr);
  };
  p.left_depth == 1 ? multiply(p.left_row, 1) : multiply(1, p.left_depth);
  if (!beyond) return;
  for (int i = 0; i < rows; ++i) {
    float* const out = p.out + i * p.out_row;
    for (std::int64_t j = 0; j < p.ends; ++j) out[j] = p.add ? out[j] + aside[i * width + j] : aside[i * width + j];
  }
}

// Multiplies all rows with the same panels: as many at once as there are registers, then the rest by 4, 2 and 1. Two
// rows alone would wait for their sums, so 6 + 2 are 4 + 4.
template <class Unit, int panels>
STEPLADDER_IN_LOOP void all_rows(Piece p, std::int64_t rows) {
  const auto advance = [&](std::int64_t by) __attribute__((always_inline)) {
    p.left += by * p.left_row;
    p.out += by * p.out_row;
    rows -= by;
  };
  while (rows >= Unit::most_rows && !(Unit::most_rows == 6 && rows == 8))
    block<Unit, Unit::most_rows, panels>(p), advance(Unit::most_rows);
  while (rows >= 4) block<Unit, 4, panels>(p), advance(4);
  if (rows >= 2) block<Unit, 2, panels>(p), advance(2);
  if (rows >= 1) block<Unit, 1, panels>(p);
}

// Panels in bf16 become float32 a block at a time, in the first-level cache,
// where all rows read them.
STEPLADDER_IN_LOOP void widened(const Bf16* panel, std::int64_t depth, float* place) {
#pragma omp simd
  for (std::int64_t i = 0; i < depth * panel_columns; ++i) place[i] = load(panel[i]);
}

template <class Unit, class Panel>
STEPLADDER_IN_LOOP void product(const Product& p, const Panel* panels) {
  constexpr int at_once = std::min(2, Unit::most_panels);
  const std::int64_t count = panel_count(p.columns), panel_depth = p.panel_depth == 0 ? p.depth : p.panel_depth;
  alignas(64) float wide[at_once * depth_block * panel_columns];
  for (std::int64_t first = 0; first < count; first += panel_block) {
    for (std::int64_t k = 0; k < p.depth; k += depth_block) {
      for (std::int64_t panel = first; panel < std::min(count, first + panel_block); panel += at_once) {
        const std::int64_t depth = std::min(depth_block, p.depth - k),
                           some = std::min<std::int64_t>(at_once, count - panel);
        const Panel* const from = panels + (panel * panel_depth + k) * panel_columns;
        Piece piece{.left = p.left + k * p.left_depth,
                    .left_row = p.left_row,
                    .left_depth = p.left_depth,
                    .depth = depth,
                    .panel_step = panel_depth * panel_columns,
                    .out = p.out + panel * panel_columns,
                    .out_row = p.out_row,
                    .ends = std::min(some * panel_columns, p.columns - panel * panel_columns),
                    .add = p.add || k > 0};
        if constexpr (std::is_same_v<Panel, float>) {
          piece.panels = from;
        } else {
          piece.panels = wide;
          for (std::int64_t i = 0; i < some; ++i)
            widened(from + i * piece.panel_step, depth, wide + i * depth_block * panel_columns);
          piece.panel_step = depth_block * panel_columns;
        }
        if (some == 2) {
          all_rows<Unit, at_once>(piece, p.rows);
        } else {
          all_rows<Unit, 1>(piece, p.rows);
        }
      }
    }
  }
}

template <class From, class To>
STEPLADDER_IN_LOOP void pack(const From* from, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                             To* panels) {
  std::int64_t j = 0;
  const auto whole = [&]<int count>() __attribute__((always_inline)) {
    for (std::int64_t k = 0; k < depth; ++k) {
      for (int n = 0; n < count; ++n) {
#pragma omp simd
        for (std::int64_t i = 0; i < panel_columns; ++i)
          store(panels[(n * depth + k) * panel_columns + i], load(from[k * stride + j + n * panel_columns + i]));
      }
    }
    j += count * panel_columns;
    panels += count * panel_columns * depth;
  };
  // Several lines of the cache from each row: the CPU fetches those that follow ahead.
  while (columns - j >= 4 * panel_columns) whole.template operator()<4>();
  while (columns - j >= 2 * panel_columns) whole.template operator()<2>();
  while (columns - j >= panel_columns) whole.template operator()<1>();
  if (j == columns) return;
  for (std::int64_t k = 0; k < depth; ++k) {
    for (std::int64_t i = 0; i < panel_columns; ++i)
      store(panels[k * panel_columns + i], j + i < columns ? load(from[k * stride + j + i]) : 0.0F);
  }
}

constexpr std::int64_t square = panel_columns * panel_columns;

// Transposes by squares of 16 x 16, a line of the cache in either direction.
template <class From, class To>
STEPLADDER_IN_LOOP void transpose(const From* from, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                                  To* panels) {
  alignas(64) float rows[square] = {}, turned[square];
  for (std::int64_t j = 0; j < columns; j += panel_columns, panels += depth * panel_columns) {
    const std::int64_t ends = std::min(panel_columns, columns - j);
    if (ends < panel_columns) std::memset(rows, 0, sizeof rows);
    for (std::int64_t k = 0; k < depth; k += panel_columns) {
      const std::int64_t some = std::min(panel_columns, depth - k);
      if constexpr (sizeof(From) == 4 && sizeof(To) == 4) {
        if (some == panel_columns && ends == panel_columns) {
          turn_square(from + j * stride + k, stride, panels + k * panel_columns, panel_columns);
          continue;
        }
      }
      for (std::int64_t i = 0; i < ends; ++i) {
        const From* const row = from + (j + i) * stride + k;
        if (some == panel_columns) {
#pragma omp simd
          for (std::int64_t n = 0; n < panel_columns; ++n) rows[i * panel_columns + n] = load(row[n]);
        } else {
          for (std::int64_t n = 0; n < some; ++n) rows[i * panel_columns + n] = load(row[n]);
        }
      }
      turn_square(rows, panel_columns, turned, panel_columns);
#pragma omp simd
      for (std::int64_t n = 0; n < some * panel_columns; ++n) store(panels[k * panel_columns + n], turned[n]);
    }
  }
}

#if defined(__x86_64__)
__attribute__((target("arch=x86-64-v4"))) void with_avx512(const Product& p, const float* panels) {
  product<Avx512Floats>(p, panels);
}
__attribute__((target("arch=x86-64-v4"))) void with_avx512(const Product& p, const Bf16* panels) {
  product<Avx512Floats>(p, panels);
}
__attribute__((target("arch=x86-64-v3"))) void with_avx2(const Product& p, const float* panels) {
  product<Avx2Floats>(p, panels);
}
__attribute__((target("arch=x86-64-v3"))) void with_avx2(const Product& p, const Bf16* panels) {
  product<Avx2Floats>(p, panels);
}
#endif

VectorUnit detected() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
    return VectorUnit::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
    return VectorUnit::avx2;
#endif
  return VectorUnit::plain;
}

VectorUnit& unit() {
  static VectorUnit unit = detected();
  return unit;
}

template <class Panel>
void multiply_here(const Product& p, const Panel* panels) {
#if defined(__x86_64__)
  if (unit() == VectorUnit::avx512) return with_avx512(p, panels);
  if (unit() == VectorUnit::avx2) return with_avx2(p, panels);
#endif
  product<PlainFloats>(p, panels);
}

}  // namespace

VectorUnit vector_unit() {
  return unit();
}

void use_vector_unit(VectorUnit chosen) {
  unit() = chosen;
}

void multiply(const Product& p, const float* panels) {
  multiply_here(p, panels);
}

void multiply(const Product& p, const Bf16* panels) {
  multiply_here(p, panels);
}

void multiply_by(int lanes, const Product& p, const float* panels) {
  if (lanes == 4) return product<PlainFloats>(p, panels);
  if (lanes == 8) return product<Avx2Floats>(p, panels);
  product<Avx512Floats>(p, panels);
}

STEPLADDER_FOR_EACH_CPU
void pack_panels(const float* from, std::int64_t stride, std::int64_t depth, std::int64_t columns, float* panels) {
  pack(from, stride, depth, columns, panels);
}

STEPLADDER_FOR_EACH_CPU
void pack_panels(const float* from, std::int64_t stride, std::int64_t depth, std::int64_t columns, Bf16* panels) {
  pack(from, stride, depth, columns, panels);
}

STEPLADDER_FOR_EACH_CPU
void pack_panels(const Bf16* from, std::int64_t stride, std::int64_t depth, std::int64_t columns, float* panels) {
  pack(from, stride, depth, columns, panels);
}

STEPLADDER_FOR_EACH_CPU
void pack_transposed(const float* from, std::int64_t stride, std::int64_t depth, std::int64_t columns, float* panels) {
  transpose(from, stride, depth, columns, panels);
}

STEPLADDER_FOR_EACH_CPU
void pack_transposed(const float* from, std::int64_t stride, std::int64_t depth, std::int64_t columns, Bf16* panels) {
  transpose(from, stride, depth, columns, panels);
}

STEPLADDER_FOR_EACH_CPU
void pack_transposed(const Bf16* from, std::int64_t stride, std::int64_t depth, std::int64_t columns, float* panels) {
  transpose(from, stride, depth, columns, panels);
}

}  // namespace stepladder
