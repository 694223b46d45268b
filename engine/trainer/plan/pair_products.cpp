// bf16 products in two ways: rows of vector sums (AVX512-BF16) and 16 x 16 tiles (AMX), each with a plain stand-in for
// tests. Both read the same panels. Instructions that not every CPU has are in functions compiled for their target only
// and chosen by `unit`.
#include "engine/trainer/plan/pair_products.h"

#include <algorithm>
#include <cstring>

#include "engine/trainer/plan/squares.h"
#include "storage/by_enum.h"

#if defined(__x86_64__) && defined(__linux__)
#define STEPLADDER_PAIR_INSTRUCTIONS 1
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace stepladder {
namespace {

constexpr std::int64_t tile_rows = 16, tile_depth = 32;
// A piece of the depth for which 32 rows of the left factor (64 KB) and two panels stay near.
constexpr std::int64_t depth_block = 1024;

// --- packing ---------------------------------------------------------------------------------------------------------

STEPLADDER_IN_LOOP std::uint32_t half_bits(float x) {
  Bf16 half{};
  store(half, x);
  return static_cast<std::uint32_t>(half);
}

STEPLADDER_IN_LOOP std::uint32_t half_bits(Bf16 x) {
  return static_cast<std::uint32_t>(x);
}

// The pairs of two rows, element by element; a null second row is zero.
template <class From>
STEPLADDER_IN_LOOP void pair_rows(const From* first, const From* second, std::int64_t columns, std::uint32_t* pairs) {
  if (second) {
#pragma omp simd
    for (std::int64_t i = 0; i < columns; ++i) pairs[i] = half_bits(first[i]) | half_bits(second[i]) << 16;
  } else {
    for (std::int64_t i = 0; i < columns; ++i) pairs[i] = half_bits(first[i]);
  }
}

template <class From>
STEPLADDER_IN_LOOP void pack(const From* from, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                             Bf16* panels) {
  const std::int64_t lines = pair_depth(depth) / 2;
  for (std::int64_t j = 0; j < columns; j += panel_columns) {
    const std::int64_t ends = std::min(panel_columns, columns - j);
    auto* const panel = reinterpret_cast<std::uint32_t*>(panels + j / panel_columns * lines * 2 * panel_columns);
    for (std::int64_t line = 0; line < lines; ++line) {
      std::uint32_t* const pairs = panel + line * panel_columns;
      const From* const row = from + 2 * line * stride + j;
      if (2 * line + 1 < depth && ends == panel_columns) {
        pair_rows(row, row + stride, panel_columns, pairs);
      } else {
        std::fill(pairs, pairs + panel_columns, 0U);
        if (2 * line < depth) pair_rows(row, 2 * line + 1 < depth ? row + stride : nullptr, ends, pairs);
      }
    }
  }
}

// Row n of the panel's columns holds its own pairs one after the other; lines hold one pair of each.
template <class From>
STEPLADDER_IN_LOOP void pack_transpose(const From* from, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                                       Bf16* panels) {
  const std::int64_t lines = pair_depth(depth) / 2;
  alignas(64) std::uint32_t rows[16 * 16];
  for (std::int64_t j = 0; j < columns; j += panel_columns) {
    const std::int64_t ends = std::min(panel_columns, columns - j);
    auto* const panel = reinterpret_cast<std::uint32_t*>(panels + j / panel_columns * lines * 2 * panel_columns);
    for (std::int64_t line = 0; line < lines; line += 16) {
      const std::int64_t some = std::clamp<std::int64_t>(depth - 2 * line, 0, 32);
      if (sizeof(From) == sizeof(Bf16) && some == 32 && ends == panel_columns && stride % 2 == 0) {
        turn_square(from + j * stride + 2 * line, stride / 2, panel + line * panel_columns, panel_columns);
        continue;
      }
      if (some < 32 || ends < panel_columns) std::memset(rows, 0, sizeof rows);
      for (std::int64_t i = 0; i < ends; ++i) {
        const From* const row = from + (j + i) * stride + 2 * line;
        if constexpr (sizeof(From) == sizeof(Bf16)) {
          std::memcpy(rows + i * 16, row, static_cast<std::size_t>(some) * sizeof(Bf16));
        } else {
          alignas(64) Bf16 halves[32] = {};
          if (some == 32) {
#pragma omp simd
            for (std::int64_t k = 0; k < 32; ++k) store(halves[k], row[k]);
          } else {
            for (std::int64_t k = 0; k < some; ++k) store(halves[k], row[k]);
          }
          std::memcpy(rows + i * 16, halves, sizeof halves);
        }
      }
      turn_square(rows, 16, panel + line * panel_columns, panel_columns);
    }
  }
}

template <class From>
STEPLADDER_IN_LOOP void transpose(const From* from, std::int64_t stride, std::int64_t rows, std::int64_t columns,
                                  Bf16* to, std::int64_t to_stride) {
  alignas(64) std::uint32_t pairs[16 * 16], turned[16 * 16];
  for (std::int64_t row = 0; row < rows; row += 32) {
    const std::int64_t some = std::min<std::int64_t>(32, rows - row);
    for (std::int64_t j = 0; j < columns; j += 16) {
      const std::int64_t ends = std::min<std::int64_t>(16, columns - j);
      for (std::int64_t pair = 0; pair < (some + 1) / 2; ++pair) {
        const From* const first = from + (row + 2 * pair) * stride + j;
        const From* const second = 2 * pair + 1 < some ? first + stride : nullptr;
        if (ends == 16) {
          pair_rows(first, second, 16, pairs + pair * 16);
        } else {
          pair_rows(first, second, ends, pairs + pair * 16);
        }
      }
      turn_square(pairs, 16, turned, 16);
      for (std::int64_t i = 0; i < ends; ++i)
        std::memcpy(to + (j + i) * to_stride + row, turned + i * 16, static_cast<std::size_t>(some) * sizeof(Bf16));
    }
  }
}

// --- a vector of 16 sums for each row --------------------------------------------------------------------------------

// The operands of both ways to multiply: a piece of the depth, two panels at most.
struct Piece {
  const Bf16* left;
  std::int64_t left_row, depth;
  const Bf16* panels;
  std::int64_t panel_step;  // from one panel to the next
  float* out;
  std::int64_t out_row, columns;
  bool add;
};

struct PlainLine {
  struct Sums {
    float of[panel_columns];
  };
  struct Right {
    float low[panel_columns], high[panel_columns];
  };
  STEPLADDER_IN_LOOP static void read(const Bf16* line, Right& right) {
    for (std::int64_t i = 0; i < panel_columns; ++i) {
      right.low[i] = load(line[2 * i]);
      right.high[i] = load(line[2 * i + 1]);
    }
  }
  STEPLADDER_IN_LOOP static void dot(Sums& sums, std::uint32_t pair, const Right& right) {
    const float low = load(static_cast<Bf16>(pair)), high = load(static_cast<Bf16>(pair >> 16));
    for (std::int64_t i = 0; i < panel_columns; ++i) sums.of[i] += low * right.low[i] + high * right.high[i];
  }
};

#if defined(STEPLADDER_PAIR_INSTRUCTIONS)
// The instruction is written out, since its intrinsic can't be inlined into a loop that also exists without it.
struct Avx512Line {
  using Sums = float __attribute__((vector_size(64)));
  using Right = std::uint32_t __attribute__((vector_size(64), aligned(4), may_alias));
  STEPLADDER_IN_LOOP static void read(const Bf16* line, Right& right) { right = reinterpret_cast<const Right&>(*line); }
  STEPLADDER_IN_LOOP static void dot(Sums& sums, std::uint32_t pair, const Right& right) {
    const Right left = Right{} + pair;
    Sums sum = sums;  // else the compiler keeps it in memory
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(left), "v"(right));
    sums = sum;
  }
};
#endif

template <class Line, int rows, int panels>
STEPLADDER_IN_LOOP void lines(const Piece& p) {
  typename Line::Sums sums[rows][panels] = {};
  const Bf16* right_line = p.panels;
  const auto step = [&](std::int64_t k, std::size_t bytes) __attribute__((always_inline)) {
    typename Line::Right right[panels];
#pragma GCC unroll 2
    for (int n = 0; n < panels; ++n) Line::read(right_line + n * p.panel_step, right[n]);
#pragma GCC unroll 12
    for (int i = 0; i < rows; ++i) {
      std::uint32_t pair = 0;
      std::memcpy(&pair, p.left + i * p.left_row + k, bytes);
#pragma GCC unroll 2
      for (int n = 0; n < panels; ++n) Line::dot(sums[i][n], pair, right[n]);
    }
    right_line += 2 * panel_columns;
  };
  const std::int64_t even = p.depth / 2 * 2;
  for (std::int64_t k = 0; k < even; k += 2) step(k, 4);
  if (p.depth > even) step(even, 2);
#pragma GCC unroll 12
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
    for (int n = 0; n < panels; ++n) {
      const typename Line::Sums sum = sums[i][n];
      alignas(64) float row[panel_columns];
      std::memcpy(row, &sum, sizeof row);
      float* const out = p.out + i * p.out_row + n * panel_columns;
      const std::int64_t ends = std::min(panel_columns, p.columns - n * panel_columns);
      for (std::int64_t j = 0; j < ends; ++j) out[j] = p.add ? out[j] + row[j] : row[j];
    }
  }
}

template <class Line, int panels>
STEPLADDER_IN_LOOP void rows_of_lines(Piece p, std::int64_t rows) {
  const auto advance = [&](std::int64_t by) __attribute__((always_inline)) {
    p.left += by * p.left_row;
    p.out += by * p.out_row;
    rows -= by;
  };
  while (rows >= 12) lines<Line, 12, panels>(p), advance(12);
  while (rows >= 4) lines<Line, 4, panels>(p), advance(4);
  while (rows >= 1) lines<Line, 1, panels>(p), advance(1);
}

template <class Line>
STEPLADDER_IN_LOOP void by_lines(const PairProduct& p, const Bf16* panels) {
  const std::int64_t step = panel_columns * pair_depth(p.panel_depth == 0 ? p.depth : p.panel_depth);
  for (std::int64_t column = 0; column < p.columns; column += 2 * panel_columns) {
    for (std::int64_t k = 0; k < p.depth; k += depth_block) {
      const Piece piece{.left = p.left + k,
                        .left_row = p.left_row,
                        .depth = std::min(depth_block, p.depth - k),
                        .panels = panels + column / panel_columns * step + k * panel_columns,
                        .panel_step = step,
                        .out = p.out + column,
                        .out_row = p.out_row,
                        .columns = std::min(2 * panel_columns, p.columns - column),
                        .add = p.add || k > 0};
      if (piece.columns > panel_columns) {
        rows_of_lines<Line, 2>(piece, p.rows);
      } else {
        rows_of_lines<Line, 1>(piece, p.rows);
      }
    }
  }
}

// --- tiles of 16 x 16 sums -------------------------------------------------------------------------------------------

// Eight tiles of 16 lines of 64 bytes: 0 to 3 are sums (row of tiles x 2 + column), 4 and 5 left, 6 and 7 right.
struct PlainTiles {
  std::byte tiles[8][tile_rows][64];
  template <int tile>
  void clear() {
    std::memset(tiles[tile], 0, sizeof tiles[tile]);
  }
  template <int tile>
  void read(const void* from, std::int64_t stride) {
    for (std::int64_t i = 0; i < tile_rows; ++i)
      std::memcpy(tiles[tile][i], static_cast<const std::byte*>(from) + i * stride, 64);
  }
  template <int tile>
  void write(void* to, std::int64_t stride) const {
    for (std::int64_t i = 0; i < tile_rows; ++i)
      std::memcpy(static_cast<std::byte*>(to) + i * stride, tiles[tile][i], 64);
  }
  template <int sums, int left, int right>
  void dot() {
    for (int i = 0; i < tile_rows; ++i) {
      Bf16 row[tile_depth];
      float to[tile_rows];
      std::memcpy(row, tiles[left][i], sizeof row);
      std::memcpy(to, tiles[sums][i], sizeof to);
      for (int k = 0; k < tile_depth; ++k) {
        Bf16 line[tile_depth];
        std::memcpy(line, tiles[right][k / 2], sizeof line);
        for (int j = 0; j < tile_rows; ++j) to[j] += load(row[k]) * load(line[2 * j + k % 2]);
      }
      std::memcpy(tiles[sums][i], to, sizeof to);
    }
  }
};

#if defined(STEPLADDER_PAIR_INSTRUCTIONS)
// The CPU's own tiles. Their configuration belongs to the thread, and oneDNN, which LibTorch calls on the same thread,
// remembers the one that it has loaded; so it is put back.
class HardwareTiles {
 public:
  HardwareTiles() {
    struct alignas(64) Configuration {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {};
      std::uint8_t rows[16] = {};
    } ours;
    for (int tile = 0; tile < 8; ++tile) ours.row_bytes[tile] = 64, ours.rows[tile] = 16;
    asm volatile("sttilecfg (%0)" : : "r"(before_) : "memory");
    asm volatile("ldtilecfg (%0)" : : "r"(&ours) : "memory");
  }
  ~HardwareTiles() { asm volatile("ldtilecfg (%0)" : : "r"(before_) : "memory"); }
  HardwareTiles(const HardwareTiles&) = delete;
  HardwareTiles& operator=(const HardwareTiles&) = delete;

  template <int tile>
  STEPLADDER_IN_LOOP void clear() {
    asm volatile("tilezero %%tmm%c0" : : "i"(tile));
  }
  template <int tile>
  STEPLADDER_IN_LOOP void read(const void* from, std::int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(tile) : "memory");
  }
  template <int tile>
  STEPLADDER_IN_LOOP void write(void* to, std::int64_t stride) const {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(tile) : "memory");
  }
  template <int sums, int left, int right>
  STEPLADDER_IN_LOOP void dot() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(left), "i"(right));
  }

 private:
  alignas(64) std::uint8_t before_[64];
};
#endif

// Multiplies up to 32 x 32 elements of C over a piece of the depth, which is a multiple of 32. Rows and columns that C
// doesn't have must be in memory all the same.
template <class Tiles, bool two_rows, bool two_columns>
STEPLADDER_IN_LOOP void tiles_of(Tiles& tiles, const Bf16* const left[2], std::int64_t left_stride, const Piece& p) {
  const std::int64_t out_stride = p.out_row * 4;
  float* const below = p.out + tile_rows * p.out_row;
  if (p.add) {
    tiles.template read<0>(p.out, out_stride);
    if constexpr (two_columns) tiles.template read<1>(p.out + 16, out_stride);
    if constexpr (two_rows) tiles.template read<2>(below, out_stride);
    if constexpr (two_rows && two_columns) tiles.template read<3>(below + 16, out_stride);
  } else {
    tiles.template clear<0>(), tiles.template clear<1>(), tiles.template clear<2>(), tiles.template clear<3>();
  }
  for (std::int64_t k = 0; k < p.depth; k += tile_depth) {
    const Bf16* const right = p.panels + k * panel_columns;
    tiles.template read<4>(left[0] + k, left_stride);
    tiles.template read<6>(right, 64);
    tiles.template dot<0, 4, 6>();
    if constexpr (two_columns) {
      tiles.template read<7>(right + p.panel_step, 64);
      tiles.template dot<1, 4, 7>();
    }
    if constexpr (two_rows) {
      tiles.template read<5>(left[1] + k, left_stride);
      tiles.template dot<2, 5, 6>();
    }
    if constexpr (two_rows && two_columns) tiles.template dot<3, 5, 7>();
  }
  tiles.template write<0>(p.out, out_stride);
  if constexpr (two_columns) tiles.template write<1>(p.out + 16, out_stride);
  if constexpr (two_rows) tiles.template write<2>(below, out_stride);
  if constexpr (two_rows && two_columns) tiles.template write<3>(below + 16, out_stride);
}

template <class Tiles>
void corner_of(Tiles& tiles, const Bf16* const left[2], std::int64_t left_stride, const Piece& piece,
               std::int64_t rows) {
  // The tiles write here where they would write beyond C.
  alignas(64) float aside[2 * tile_rows * 2 * panel_columns];
  Piece p = piece;
  const bool beyond = rows % tile_rows != 0 || piece.columns % panel_columns != 0;
  const auto copy = [&](const float* from, std::int64_t from_row, float* to, std::int64_t to_row) {
    for (std::int64_t i = 0; i < rows; ++i)
      std::memcpy(to + i * to_row, from + i * from_row, static_cast<std::size_t>(piece.columns) * 4);
  };
  if (beyond) {
    p.out = aside;
    p.out_row = 2 * panel_columns;
    if (p.add) copy(piece.out, piece.out_row, aside, p.out_row);
  }
  if (rows > tile_rows) {
    piece.columns > panel_columns ? tiles_of<Tiles, true, true>(tiles, left, left_stride, p)
                                  : tiles_of<Tiles, true, false>(tiles, left, left_stride, p);
  } else {
    piece.columns > panel_columns ? tiles_of<Tiles, false, true>(tiles, left, left_stride, p)
                                  : tiles_of<Tiles, false, false>(tiles, left, left_stride, p);
  }
  if (beyond) copy(aside, p.out_row, piece.out, piece.out_row);
}

template <class Tiles>
void by_tiles(const PairProduct& p, const Bf16* panels) {
  const std::int64_t step = panel_columns * pair_depth(p.panel_depth == 0 ? p.depth : p.panel_depth);
  alignas(64) Bf16 filled[2 * tile_rows * depth_block];
  Tiles tiles;
  for (std::int64_t row = 0; row < p.rows; row += 2 * tile_rows) {
    const std::int64_t rows = std::min(2 * tile_rows, p.rows - row);
    for (std::int64_t k = 0; k < p.depth; k += depth_block) {
      const std::int64_t depth = std::min(depth_block, p.depth - k);
      const Bf16* from = p.left + row * p.left_row + k;
      std::int64_t from_row = p.left_row;
      // Zeros replace values beyond A that a tile would read, since these may be NaN.
      if (rows % tile_rows != 0 || depth % tile_depth != 0) {
        from_row = pair_depth(depth);
        std::memset(filled, 0, static_cast<std::size_t>(2 * tile_rows * from_row) * sizeof(Bf16));
        for (std::int64_t i = 0; i < rows; ++i)
          std::memcpy(filled + i * from_row, from + i * p.left_row, static_cast<std::size_t>(depth) * sizeof(Bf16));
        from = filled;
      }
      const Bf16* const left[2] = {from, from + tile_rows * from_row};
      for (std::int64_t column = 0; column < p.columns; column += 2 * panel_columns) {
        corner_of(tiles, left, from_row * 2,
                  {.left = nullptr,
                   .left_row = 0,
                   .depth = pair_depth(depth),
                   .panels = panels + column / panel_columns * step + k * panel_columns,
                   .panel_step = step,
                   .out = p.out + row * p.out_row + column,
                   .out_row = p.out_row,
                   .columns = std::min(2 * panel_columns, p.columns - column),
                   .add = p.add || k > 0},
                  rows);
      }
    }
  }
}

// --- the unit --------------------------------------------------------------------------------------------------------

#if defined(STEPLADDER_PAIR_INSTRUCTIONS)
__attribute__((target("arch=x86-64-v4"))) void with_avx512(const PairProduct& p, const Bf16* panels) {
  by_lines<Avx512Line>(p, panels);
}

// Linux gives a process the tiles' registers when it asks for them.
bool tiles_allowed() {
  constexpr int request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}
#endif

PairUnit detected() {
#if defined(STEPLADDER_PAIR_INSTRUCTIONS)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return PairUnit::none;
  constexpr unsigned amx_bf16 = 1U << 22, amx_tile = 1U << 24, avx512_bf16 = 1U << 5;
  const bool has_tiles = (d & amx_bf16) && (d & amx_tile);
  const bool vectors = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!vectors || !__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a & avx512_bf16)) return PairUnit::none;
  return has_tiles && tiles_allowed() ? PairUnit::amx : PairUnit::avx512_bf16;
#endif
  return PairUnit::none;
}

PairUnit& unit() {
  static PairUnit unit = detected();
  return unit;
}

}  // namespace

PairUnit pair_unit() {
  return unit();
}

void use_pair_unit(PairUnit chosen) {
  unit() = chosen;
}

const char* name_of(PairUnit unit) {
  return by_enum<PairUnit>("own", "plain pairs", "AVX512-BF16", "plain tiles", "AMX")[unit];
}

void multiply(const PairProduct& p, const Bf16* panels) {
  multiply(p, panels, unit());
}

void multiply(const PairProduct& p, const Bf16* panels, PairUnit by) {
  switch (by) {
#if defined(STEPLADDER_PAIR_INSTRUCTIONS)
    case PairUnit::amx:
      return by_tiles<HardwareTiles>(p, panels);
    case PairUnit::avx512_bf16:
      return with_avx512(p, panels);
#endif
    case PairUnit::plain_tiles:
      return by_tiles<PlainTiles>(p, panels);
    default:
      return by_lines<PlainLine>(p, panels);
  }
}

STEPLADDER_FOR_EACH_CPU
void pack_pairs(const float* from, std::int64_t stride, std::int64_t depth, std::int64_t columns, Bf16* panels) {
  pack(from, stride, depth, columns, panels);
}

STEPLADDER_FOR_EACH_CPU
void pack_pairs(const Bf16* from, std::int64_t stride, std::int64_t depth, std::int64_t columns, Bf16* panels) {
  pack(from, stride, depth, columns, panels);
}

STEPLADDER_FOR_EACH_CPU
void pack_pairs_transposed(const float* from, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                           Bf16* panels) {
  pack_transpose(from, stride, depth, columns, panels);
}

STEPLADDER_FOR_EACH_CPU
void pack_pairs_transposed(const Bf16* from, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                           Bf16* panels) {
  pack_transpose(from, stride, depth, columns, panels);
}

STEPLADDER_FOR_EACH_CPU
void transpose_to_half(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t columns, Bf16* to,
                       std::int64_t to_stride) {
  transpose(from, stride, rows, columns, to, to_stride);
}

STEPLADDER_FOR_EACH_CPU
void transpose_to_half(const Bf16* from, std::int64_t stride, std::int64_t rows, std::int64_t columns, Bf16* to,
                       std::int64_t to_stride) {
  transpose(from, stride, rows, columns, to, to_stride);
}

}  // namespace stepladder
