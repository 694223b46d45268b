// float32 products over packed panels, blocked for the caches, with variants for AVX-512, AVX2 and plain vectors that
// are picked once by the CPU. Each element of C is summed in the same order whatever the split, which the plan's
// reproducible bits depend on.
#include "engine/trainer/plan/products.h"

#include <algorithm>
#include <cstring>

#include "engine/trainer/plan/squares.h"

namespace stepladder {
namespace {

// A block of the depth for which a panel (16 KB) stays in the first-level cache
// while all rows pass it.
constexpr std::int64_t depth_block = 256;
// Panels whose blocks (16 x 16 KB) stay in the second-level cache.
constexpr std::int64_t panel_block = 16;

// A vector of float32, as GCC and Clang have it: arithmetic on it becomes the
// instructions of the enclosing function's target.
template <int lanes>
struct Unit;
#define STEPLADDER_UNIT(LANES)                                                           \
  template <>                                                                            \
  struct Unit<LANES> {                                                                   \
    using Floats = float __attribute__((vector_size(LANES * 4), aligned(4), may_alias)); \
  };
STEPLADDER_UNIT(4)
STEPLADDER_UNIT(8)
STEPLADDER_UNIT(16)
#undef STEPLADDER_UNIT

// The operands of a tile. `ends` columns of the panel are in C.
struct Tile {
  const float* left;
  std::int64_t left_row, left_depth, depth;
  const float* panel;
  float* out;
  std::int64_t out_row;
  std::int64_t ends;
  bool add;
};

// `rows` rows of C times one panel, kept in registers over the depth: rows x 16
// / lanes sums.
template <int lanes, int rows>
STEPLADDER_IN_LOOP void tile(const Tile& t) {
  using Floats = typename Unit<lanes>::Floats;
  constexpr int vectors = panel_columns / lanes;
  Floats sums[rows][vectors] = {};
  for (std::int64_t k = 0; k < t.depth; ++k) {
    Floats right[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v)
      right[v] = reinterpret_cast<const Floats&>(t.panel[k * panel_columns + v * lanes]);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const float left = t.left[i * t.left_row + k * t.left_depth];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[i][v] += left * right[v];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
    float* const out = t.out + i * t.out_row;
    if (t.ends == panel_columns) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        Floats& place = reinterpret_cast<Floats&>(out[v * lanes]);
        place = t.add ? place + sums[i][v] : sums[i][v];
      }
    } else {
      alignas(64) float row[panel_columns];
      std::memcpy(row, sums[i], sizeof row);
      for (std::int64_t j = 0; j < t.ends; ++j) out[j] = t.add ? out[j] + row[j] : row[j];
    }
  }
}

// Multiplies all rows of one panel's block: as many at once as there are registers, then the rest by 4, 2 and 1. The
// stride along the depth is a constant 1 where it is 1.
template <int lanes, int rows_at_once>
STEPLADDER_IN_LOOP void rows_of_panel(Tile t, std::int64_t rows) {
  const auto advance = [&](std::int64_t by) __attribute__((always_inline)) {
    t.left += by * t.left_row;
    t.out += by * t.out_row;
    rows -= by;
  };
  while (rows >= rows_at_once) tile<lanes, rows_at_once>(t), advance(rows_at_once);
  while (rows >= 4) tile<lanes, 4>(t), advance(4);
  if (rows >= 2) tile<lanes, 2>(t), advance(2);
  if (rows >= 1) tile<lanes, 1>(t);
}

// Panels in bf16 become float32 a block at a time, in the first-level cache,
// where all rows read them.
STEPLADDER_IN_LOOP const float* widened(const float* panel, std::int64_t, float*) {
  return panel;
}

STEPLADDER_IN_LOOP const float* widened(const Bf16* panel, std::int64_t depth, float* place) {
#pragma omp simd
  for (std::int64_t i = 0; i < depth * panel_columns; ++i) place[i] = load(panel[i]);
  return place;
}

template <int lanes, int rows_at_once, class Panel>
STEPLADDER_IN_LOOP void product(const Product& p, const Panel* panels) {
  const std::int64_t count = panel_count(p.columns), panel_depth = p.panel_depth == 0 ? p.depth : p.panel_depth;
  alignas(64) float block[depth_block * panel_columns];
  for (std::int64_t first = 0; first < count; first += panel_block) {
    for (std::int64_t k = 0; k < p.depth; k += depth_block) {
      for (std::int64_t panel = first; panel < std::min(count, first + panel_block); ++panel) {
        const std::int64_t depth = std::min(depth_block, p.depth - k);
        Tile t{.left = p.left + k * p.left_depth,
               .left_row = p.left_row,
               .left_depth = p.left_depth,
               .depth = depth,
               .panel = widened(panels + (panel * panel_depth + k) * panel_columns, depth, block),
               .out = p.out + panel * panel_columns,
               .out_row = p.out_row,
               .ends = std::min(panel_columns, p.columns - panel * panel_columns),
               .add = p.add || k > 0};
        if (t.left_depth == 1) {
          t.left_depth = 1;
          rows_of_panel<lanes, rows_at_once>(t, p.rows);
        } else {
          t.left_row = 1;
          rows_of_panel<lanes, rows_at_once>(t, p.rows);
        }
      }
    }
  }
}

template <class From, class To>
STEPLADDER_IN_LOOP void pack(const From* from, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                             To* panels) {
  for (std::int64_t j = 0; j < columns; j += panel_columns, panels += depth * panel_columns) {
    const std::int64_t ends = std::min(panel_columns, columns - j);
    if (ends == panel_columns) {
      for (std::int64_t k = 0; k < depth; ++k) {
#pragma omp simd
        for (std::int64_t i = 0; i < panel_columns; ++i)
          store(panels[k * panel_columns + i], load(from[k * stride + j + i]));
      }
    } else {
      for (std::int64_t k = 0; k < depth; ++k) {
        for (std::int64_t i = 0; i < panel_columns; ++i)
          store(panels[k * panel_columns + i], i < ends ? load(from[k * stride + j + i]) : 0.0F);
      }
    }
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
      for (std::int64_t i = 0; i < ends; ++i) {
        const From* const row = from + (j + i) * stride + k;
        if (some == panel_columns) {
#pragma omp simd
          for (std::int64_t n = 0; n < panel_columns; ++n) rows[i * panel_columns + n] = load(row[n]);
        } else {
          for (std::int64_t n = 0; n < some; ++n) rows[i * panel_columns + n] = load(row[n]);
        }
      }
      turn_square(rows, turned, panel_columns);
#pragma omp simd
      for (std::int64_t n = 0; n < some * panel_columns; ++n) store(panels[k * panel_columns + n], turned[n]);
    }
  }
}

#if defined(__x86_64__)
__attribute__((target("arch=x86-64-v4"))) void with_avx512(const Product& p, const float* panels) {
  product<16, 12>(p, panels);
}
__attribute__((target("arch=x86-64-v4"))) void with_avx512(const Product& p, const Bf16* panels) {
  product<16, 12>(p, panels);
}
__attribute__((target("arch=x86-64-v3"))) void with_avx2(const Product& p, const float* panels) {
  product<8, 6>(p, panels);
}
__attribute__((target("arch=x86-64-v3"))) void with_avx2(const Product& p, const Bf16* panels) {
  product<8, 6>(p, panels);
}
#endif

enum class Vectors { plain, avx2, avx512 };

Vectors detected() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
    return Vectors::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
    return Vectors::avx2;
#endif
  return Vectors::plain;
}

const Vectors vectors = detected();

template <class Panel>
void multiply_here(const Product& p, const Panel* panels) {
#if defined(__x86_64__)
  if (vectors == Vectors::avx512) return with_avx512(p, panels);
  if (vectors == Vectors::avx2) return with_avx2(p, panels);
#endif
  product<4, 3>(p, panels);
}

}  // namespace

void multiply(const Product& p, const float* panels) {
  multiply_here(p, panels);
}

void multiply(const Product& p, const Bf16* panels) {
  multiply_here(p, panels);
}

void multiply_by(int lanes, const Product& p, const float* panels) {
  if (lanes == 4) return product<4, 3>(p, panels);
  if (lanes == 8) return product<8, 6>(p, panels);
  product<16, 12>(p, panels);
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
