// Attention's inner loops in vectors of 4, 8 or 16 numbers. A product keeps up to 8 x 48 sums in registers (6 x 16 with
// AVX2), so that it needs fewer loads than multiplications; rows are taken in groups, and each group only computes what
// its last query sees. Loops over scores take whole vectors and mask the last one.
#include "engine/trainer/plan/attention_unit.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/trainer/plan/pair_products.h"
#include "engine/trainer/plan/register_block.h"

// Vectors are returned by functions that are always inlined, so no calling convention matters.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace stepladder {
namespace {

STEPLADDER_IN_LOOP std::uint32_t half_bits(float x) {
  Bf16 half{};
  store(half, x);
  return static_cast<std::uint32_t>(half);
}

// --- bf16 pairs -----------------------------------------------------------------------------------------------

// Pairs of bf16, whose products are added to one float32.
struct PlainPairs {
  static constexpr int lanes = 4, values = 2, most_rows = 3, most_panels = 1;
  using Floats = Vector<4>::Floats;
  using Right = Vector<4>::Ints;
  static STEPLADDER_IN_LOOP void multiply_add(Floats& sum, const float* word, const Right& right) {
    std::uint32_t pair = 0;
    std::memcpy(&pair, word, sizeof pair);
    const auto low = reinterpret_cast<Floats>(right << 16), high = reinterpret_cast<Floats>((right >> 16) << 16);
    sum += load(static_cast<Bf16>(pair)) * low + load(static_cast<Bf16>(pair >> 16)) * high;
  }
  // The halves of the first vector, then those of the second.
  static STEPLADDER_IN_LOOP void write_halves(float* to, const Floats& first, const Floats& second) {
    std::uint32_t words[lanes] = {};
    for (int i = 0; i < lanes; ++i) {
      const int n = i * 2 % lanes;
      const Floats& from = i < lanes / 2 ? first : second;
      words[i] = half_bits(from[n]) | half_bits(from[n + 1]) << 16;
    }
    std::memcpy(to, words, sizeof words);
  }
  // Word i holds the halves i of both.
  static STEPLADDER_IN_LOOP void write_pairs(float* to, const Floats& low, const Floats& high) {
    std::uint32_t words[lanes] = {};
    for (int i = 0; i < lanes; ++i) words[i] = half_bits(low[i]) | half_bits(high[i]) << 16;
    std::memcpy(to, words, sizeof words);
  }
};

#if defined(__x86_64__)
// The instructions are written out, since their intrinsics can't be inlined into loops that also exist without them.
struct Avx512Pairs {
  static constexpr int lanes = 16, values = 2, most_rows = 8, most_panels = 3;
  using Floats = Vector<16>::Floats;
  using Right = Vector<16>::Ints;
  using Halves = std::uint16_t __attribute__((vector_size(64), aligned(4), may_alias));
  static STEPLADDER_IN_LOOP void multiply_add(Floats& sums, const float* word, const Right& right) {
    std::int32_t pair = 0;
    std::memcpy(&pair, word, sizeof pair);
    const Right left = Right{} + pair;
    Floats sum = sums;  // else the compiler keeps it in memory
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(left), "v"(right));
    sums = sum;
  }
  static STEPLADDER_IN_LOOP Halves halves_of(const Floats& first, const Floats& second) {
    Halves halves;
    asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(halves) : "v"(first), "v"(second));
    return halves;
  }
  static STEPLADDER_IN_LOOP void write_halves(float* to, const Floats& first, const Floats& second) {
    at<Halves>(to) = halves_of(first, second);
  }
  static STEPLADDER_IN_LOOP void write_pairs(float* to, const Floats& low, const Floats& high) {
    const Halves halves = halves_of(low, high);
    at<Halves>(to) = __builtin_shufflevector(halves, halves, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8,
                                             24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
};
#endif

// --- products --------------------------------------------------------------------------------------------------------

// The rows [row, row + rows), with what the last of them needs.
template <class Unit, int rows>
STEPLADDER_IN_LOOP void group(const TileProduct& p, std::int64_t row) {
  // Half a panel where that is a vector.
  constexpr std::int64_t least = Unit::lanes == 8 ? 8 : panel_columns;
  const std::int64_t seen = p.behind + row + rows;  // keys that the last query sees
  std::int64_t columns = p.columns, begin = 0, end = p.depth;
  if (p.causal == Causal::columns) columns = std::min(columns, (seen + least - 1) / least * least);
  if (p.causal == Causal::depth_ends) end = std::min(end, (seen + Unit::values - 1) / Unit::values);
  if (p.causal == Causal::depth_begins)
    begin = std::max<std::int64_t>(0, std::min(end, (row - p.behind) / Unit::values));
  const float* const left = p.left + row * p.left_row + begin * p.left_depth;
  const float* right = p.right + begin * panel_columns;
  float* out = p.out + row * p.out_row;
  const float* const factors = p.factors ? p.factors + row : nullptr;
  const auto take = [&]<int count>() __attribute__((always_inline)) {
    const auto multiply = [&](std::int64_t left_row, std::int64_t left_depth) __attribute__((always_inline)) {
      multiply_block<Unit, rows, count / Unit::lanes>(left, left_row, left_depth, end - begin, right, p.panel_step, out,
                                                      p.out_row, p.add, factors);
    };
    // A step of 1 as a constant.
    p.left_depth == 1 ? multiply(p.left_row, 1) : multiply(1, p.left_depth);
    right += count / panel_columns * p.panel_step;
    out += count;
    columns -= count;
  };
  if constexpr (Unit::most_panels == 3) {
    while (columns == 48 || columns > 64) take.template operator()<48>();
    while (columns >= 32) take.template operator()<32>();
  }
  while (columns >= panel_columns) take.template operator()<panel_columns>();
  if constexpr (least < panel_columns) {
    if (columns > 0) take.template operator()<least>();
  }
}

template <class Unit>
STEPLADDER_IN_LOOP void multiply_by(const TileProduct& p) {
  std::int64_t row = 0;
  for (; p.rows - row >= Unit::most_rows; row += Unit::most_rows) group<Unit, Unit::most_rows>(p, row);
  if constexpr (Unit::most_rows > 4) {
    for (; p.rows - row >= 4; row += 4) group<Unit, 4>(p, row);
  }
  if (p.rows - row >= 2) group<Unit, 2>(p, row), row += 2;
  if (p.rows - row >= 1) group<Unit, 1>(p, row);
}

// --- softmax ---------------------------------------------------------------------------------------------------------

constexpr float log2_of_e = 1.44269504F;

// 2^x for x <= 0 within 2 ulp: the whole part goes into the exponent, a polynomial (Cephes, exp2f) gives the rest.
// Below -125 it is 0; NaN stays NaN.
template <class Unit>
STEPLADDER_IN_LOOP typename Unit::Floats power_of_2(const typename Unit::Floats& x) {
  using Floats = typename Unit::Floats;
  using Ints = typename Vector<Unit::lanes>::Ints;
  const float round_by_adding = 12582912.0F;  // 1.5 x 2^23: pushes the fraction out of the mantissa
  const Floats rounded = x + round_by_adding;
  const Floats rest = x - (rounded - round_by_adding);
  Floats p = rest * 1.535336188319500E-4F + 1.339887440266574E-3F;
  p = p * rest + 9.618437357674640E-3F;
  p = p * rest + 5.550332471162809E-2F;
  p = p * rest + 2.402264791363012E-1F;
  p = p * rest + 6.931472028550421E-1F;
  p = p * rest + 1.0F;
  const Ints exponent = (reinterpret_cast<Ints>(rounded) << 23) + (127 << 23);
  p = p * reinterpret_cast<Floats>(exponent);
  return x < -125.0F ? Floats{} : p;
}

template <class V, class Op>
STEPLADDER_IN_LOOP float across(const V& vector, const Op& op) {
  constexpr int lanes = sizeof(V) / 4;
  if constexpr (lanes == 16) {
    using Half = Vector<8>::Floats;
    const Half low = __builtin_shufflevector(vector, vector, 0, 1, 2, 3, 4, 5, 6, 7);
    const Half high = __builtin_shufflevector(vector, vector, 8, 9, 10, 11, 12, 13, 14, 15);
    return across(static_cast<Half>(op(low, high)), op);
  } else if constexpr (lanes == 8) {
    using Half = Vector<4>::Floats;
    const Half low = __builtin_shufflevector(vector, vector, 0, 1, 2, 3);
    const Half high = __builtin_shufflevector(vector, vector, 4, 5, 6, 7);
    return across(static_cast<Half>(op(low, high)), op);
  } else {
    const V turned = __builtin_shufflevector(vector, vector, 2, 3, 0, 1);
    const V two = op(vector, turned);
    const V other = __builtin_shufflevector(two, two, 1, 0, 3, 2);
    return static_cast<V>(op(two, other))[0];
  }
}

constexpr auto larger = [](const auto& a, const auto& b) __attribute__((always_inline)) {
  return a > b ? a : b;
};
constexpr auto added = [](const auto& a, const auto& b) __attribute__((always_inline)) {
  return a + b;
};

constexpr std::int64_t most_lanes = 16;

struct Masks {
  std::int32_t of[2 * most_lanes];
};
constexpr Masks masks = [] {
  Masks made{};
  for (std::int64_t i = 0; i < most_lanes; ++i) made.of[i] = -1;
  return made;
}();

// The first `count` (0 to `lanes`) lanes of `vector`; the rest is `other`. By bits, since a comparison of lanes with a
// count becomes scalar instructions.
template <class Unit>
STEPLADDER_IN_LOOP typename Unit::Floats only(std::int64_t count, const typename Unit::Floats& vector, float other) {
  using Floats = typename Unit::Floats;
  using Ints = typename Vector<Unit::lanes>::Ints;
  const Ints mask = reinterpret_cast<const Ints&>(masks.of[most_lanes - count]),
             rest = reinterpret_cast<Ints>(Floats{} + other);
  return reinterpret_cast<Floats>((reinterpret_cast<Ints>(vector) & mask) | (rest & ~mask));
}

// The natural logarithm of x >= 1 (Cephes, logf), without a branch, so that a loop of it becomes vector instructions.
STEPLADDER_IN_LOOP float log_of(float x) {
  const auto bits = std::bit_cast<std::int32_t>(x);
  const std::int32_t whole = (bits - 0x3f3504f3) >> 23;  // so that the rest is within sqrt(1/2) and sqrt(2)
  const float f = std::bit_cast<float>(bits - (whole << 23)) - 1.0F, e = static_cast<float>(whole), square = f * f;
  float p = 7.0376836292e-2F;
  p = p * f - 1.1514610310e-1F;
  p = p * f + 1.1676998740e-1F;
  p = p * f - 1.2420140846e-1F;
  p = p * f + 1.4249322787e-1F;
  p = p * f - 1.6668057665e-1F;
  p = p * f + 2.0000714765e-1F;
  p = p * f - 2.4999993993e-1F;
  p = p * f + 3.3333331174e-1F;
  const float log = (p * f * square - 2.12194440e-4F * e - 0.5F * square) + f + 0.693359375F * e;
  return x == x ? log : x;
}

// Keys after the last one that a query sees, at which a product may look since another row of its group sees them. None
// where groups of rows end with a panel: the rest of the last vector is zero. Never more than a vector: a loop over it
// would become a call of memset for each row.
template <class Unit>
constexpr std::int64_t beyond =
    panel_columns % Unit::most_rows == 0 && Unit::lanes == panel_columns ? 0 : Unit::most_rows;

// The loops over scores mask the last vector that a query sees even if it sees all of it, so that neighbouring rows
// take the same branches.
template <int lanes>
constexpr std::int64_t last_vector(std::int64_t seen) {
  return (seen - 1) & -lanes;
}

// The highest of a row's scores that the query sees.
template <class Unit>
STEPLADDER_IN_LOOP float highest_of(const float* scores, std::int64_t seen) {
  using Floats = typename Unit::Floats;
  const std::int64_t last = last_vector<Unit::lanes>(seen);
  Floats highest = only<Unit>(seen - last, at<Floats>(scores + last), -std::numeric_limits<float>::infinity());
  for (std::int64_t i = 0; i < last; i += Unit::lanes) highest = larger(at<Floats>(scores + i), highest);
  return across(highest, larger);
}

// Scores become 2^(scale score - top), up to the end of what products look at. Returns their sum.
template <class Unit>
STEPLADDER_IN_LOOP float powers_of_row(float* scores, std::int64_t seen, std::int64_t columns, float scale, float top) {
  using Floats = typename Unit::Floats;
  constexpr int lanes = Unit::lanes, values = Unit::values;
  const std::int64_t last = last_vector<lanes>(seen);
  const auto power = [&](std::int64_t i) __attribute__((always_inline)) {
    return power_of_2<Unit>(at<Floats>(scores + i) * scale - top);
  };
  const auto last_power = [&]() __attribute__((always_inline)) {
    return only<Unit>(seen - last, power(last), 0);
  };
  Floats sums = {};
  std::int64_t i = 0;
  if constexpr (values == 1) {
    for (; i < last; i += lanes) {
      const Floats e = power(i);
      at<Floats>(scores + i) = e;
      sums += e;
    }
    const Floats e = last_power();
    at<Floats>(scores + last) = e;
    sums += e;
    i += lanes;
  } else {
    for (; i + lanes < last; i += 2 * lanes) {
      const Floats first = power(i), second = power(i + lanes);
      sums += first + second;
      Unit::write_halves(scores + i / 2, first, second);
    }
    const Floats first = i < last ? power(i) : last_power(), second = i < last ? last_power() : Floats{};
    sums += first + second;
    Unit::write_halves(scores + i / 2, first, second);
    i += 2 * lanes;
  }
  if (i < std::min(columns, seen + beyond<Unit>)) at<Floats>(scores + i / values) = Floats{};
  return across(sums, added);
}

template <class Unit>
STEPLADDER_IN_LOOP void softmax_by(const ScoreTile& tile, float* factors, float* log_sums) {
  const float scale = tile.scale * log2_of_e;
  // So many rows stay in the first-level cache between the two passes, each of which has many rows in flight.
  constexpr std::int64_t some = 8;
  for (std::int64_t first = 0; first < tile.rows; first += some) {
    const std::int64_t end = std::min(tile.rows, first + some), seen = tile.behind + 1;
    for (std::int64_t row = first; row < end; ++row)
      log_sums[row] = highest_of<Unit>(tile.scores + row * tile.stride, seen + row) * scale;
    for (std::int64_t row = first; row < end; ++row)
      factors[row] =
          powers_of_row<Unit>(tile.scores + row * tile.stride, seen + row, tile.columns, scale, log_sums[row]);
  }
#pragma omp simd
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    log_sums[row] = log_sums[row] * (1 / log2_of_e) + log_of(factors[row]);
    factors[row] = 1.0F / factors[row];
  }
}

template <class Unit>
STEPLADDER_IN_LOOP void softmax_backward_by(const ScoreTile& tile, float* d_scores, const float* log_sums,
                                            const float* means, float* halves) {
  using Floats = typename Unit::Floats;
  constexpr int lanes = Unit::lanes;
  const float scale = tile.scale * log2_of_e;
  if constexpr (Unit::values == 1) {
    for (std::int64_t row = 0; row < tile.rows; ++row) {
      float *const s = tile.scores + row * tile.stride, *const d_s = d_scores + row * tile.stride;
      const std::int64_t seen = std::min(tile.columns, tile.behind + row + 1), last = last_vector<lanes>(seen);
      const float log_sum = log_sums[row] * log2_of_e, mean = means[row];
      const auto take = [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        Floats p = power_of_2<Unit>(at<Floats>(s + i) * scale - log_sum);
        Floats d = p * (at<Floats>(d_s + i) - mean);
        if (count < lanes) p = only<Unit>(count, p, 0), d = only<Unit>(count, d, 0);
        at<Floats>(s + i) = p;
        at<Floats>(d_s + i) = d;
      };
      for (std::int64_t i = 0; i < last; i += lanes) take(i, lanes);
      take(last, seen - last);
      const std::int64_t i = last + lanes;
      if (i < std::min(tile.columns, seen + beyond<Unit>)) at<Floats>(s + i) = at<Floats>(d_s + i) = Floats{};
    }
  } else {
    for (std::int64_t row = 0; row < tile.rows; row += 2) {
      float *const s = tile.scores + row * tile.stride, *const d_s = d_scores + row * tile.stride;
      const auto seen = [&](std::int64_t n) __attribute__((always_inline)) {
        return row + n < tile.rows ? std::min(tile.columns, tile.behind + row + n + 1) : 0;
      };
      const std::int64_t seens[2] = {seen(0), seen(1)}, most = std::max(seens[0], seens[1]);
      const float log_sum[2] = {log_sums[row] * log2_of_e, seens[1] > 0 ? log_sums[row + 1] * log2_of_e : 0};
      const float mean[2] = {means[row], seens[1] > 0 ? means[row + 1] : 0};
      std::int64_t i = 0;
      for (; i < most; i += 2 * lanes) {
        Floats p[2][2], d[2][2];
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) {
          const std::int64_t at_key = i + v * lanes;
          if (at_key >= tile.columns) {  // half of the last two panels
            p[0][v] = p[1][v] = d[0][v] = d[1][v] = Floats{};
            continue;
          }
#pragma GCC unroll 2
          for (int n = 0; n < 2; ++n) {
            const std::int64_t left = seens[n] - at_key, place = n * tile.stride + at_key;
            p[n][v] = power_of_2<Unit>(at<Floats>(s + place) * scale - log_sum[n]);
            d[n][v] = p[n][v] * (at<Floats>(d_s + place) - mean[n]);
            if (left < lanes) {
              const std::int64_t count = std::max<std::int64_t>(left, 0);
              p[n][v] = only<Unit>(count, p[n][v], 0);
              d[n][v] = only<Unit>(count, d[n][v], 0);
            }
          }
          Unit::write_pairs(s + at_key, p[0][v], p[1][v]);
          Unit::write_pairs(d_s + at_key, d[0][v], d[1][v]);
        }
#pragma GCC unroll 2
        for (int n = 0; n < 2; ++n) Unit::write_halves(halves + (row + n) * tile.stride / 2 + i / 2, d[n][0], d[n][1]);
      }
      const std::int64_t looked_at = std::min(tile.columns, most + beyond<Unit>);
      for (std::int64_t k = i; k < looked_at; k += lanes) at<Floats>(s + k) = at<Floats>(d_s + k) = Floats{};
      for (int n = 0; n < 2; ++n) {
        for (std::int64_t k = i; k < looked_at; k += 2 * lanes)
          at<Floats>(halves + (row + n) * tile.stride / 2 + k / 2) = Floats{};
      }
    }
  }
}

// --- units -----------------------------------------------------------------------------------------------------------

// A unit's functions, compiled for its instructions.
#define STEPLADDER_ATTENTION_UNIT(NAME, UNIT, TARGET)                                                \
  TARGET void NAME##_multiply(const TileProduct& product) {                                          \
    multiply_by<UNIT>(product);                                                                      \
  }                                                                                                  \
  TARGET void NAME##_softmax(const ScoreTile& tile, float* factors, float* log_sums) {               \
    softmax_by<UNIT>(tile, factors, log_sums);                                                       \
  }                                                                                                  \
  TARGET void NAME##_softmax_backward(const ScoreTile& tile, float* d_scores, const float* log_sums, \
                                      const float* means, float* halves) {                           \
    softmax_backward_by<UNIT>(tile, d_scores, log_sums, means, halves);                              \
  }                                                                                                  \
  constexpr AttentionUnit NAME = {#NAME, UNIT::values == 2, NAME##_multiply, NAME##_softmax, NAME##_softmax_backward};

STEPLADDER_ATTENTION_UNIT(plain, PlainFloats, )
STEPLADDER_ATTENTION_UNIT(plain_pairs, PlainPairs, )
#if defined(__x86_64__)
STEPLADDER_ATTENTION_UNIT(avx2, Avx2Floats, __attribute__((target("arch=x86-64-v3"))))
STEPLADDER_ATTENTION_UNIT(avx512, Avx512Floats, __attribute__((target("arch=x86-64-v4"))))
STEPLADDER_ATTENTION_UNIT(avx512_pairs, Avx512Pairs, __attribute__((target("arch=x86-64-v4"))))
#endif
#undef STEPLADDER_ATTENTION_UNIT

}  // namespace

const AttentionUnit& attention_unit(float) {
#if defined(__x86_64__)
  if (vector_unit() == VectorUnit::avx512) return avx512;
  if (vector_unit() == VectorUnit::avx2) return avx2;
#endif
  return plain;
}

const AttentionUnit& attention_unit(Bf16) {
  switch (pair_unit()) {
    case PairUnit::none:
      return attention_unit(0.0F);
#if defined(__x86_64__)
    case PairUnit::amx:  // each CPU with AMX has AVX512-BF16
    case PairUnit::avx512_bf16:
      return avx512_pairs;
#endif
    default:
      return plain_pairs;
  }
}

}  // namespace stepladder
