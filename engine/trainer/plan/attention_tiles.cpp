// Flash attention for one head on a CPU, in scratch memory of the calling worker. Forward takes a block of queries with
// all keys that they see, so that a softmax is exact at once; backward takes 64 x 64 tiles. attention_scratch must
// cover what `forward` and `backward` take from Scratch; nothing checks it at run time.
#include "engine/trainer/plan/attention_tiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "engine/trainer/plan/attention_unit.h"
#include "engine/trainer/plan/pair_products.h"
#include "engine/trainer/plan/plan_loops.h"
#include "engine/trainer/plan/products.h"

namespace stepladder {
namespace {

constexpr std::int64_t edge = 64;          // of a tile
constexpr std::int64_t value_block = 128;  // keys whose values stay in the first-level cache

constexpr std::int64_t up_to(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

float scale_of(const HeadShape& head) {
  return 1.0F / std::sqrt(static_cast<float>(head.width));
}

// Queries whose scores of all keys stay in the second-level cache.
std::int64_t query_block(const HeadShape& head) {
  return std::clamp<std::int64_t>((std::int64_t{1} << 16) / head.length / 8 * 8, 8, edge);
}

// Keys whose factors and gradients stay in the second-level cache while all queries pass them, for rows of `columns`.
std::int64_t near_keys(std::int64_t columns) {
  return std::max(edge, (std::int64_t{1} << 14) / columns / edge * edge);
}

// Floats from one query's scores to the next one's; not a power of two, which would put them into a few sets of the
// cache.
std::int64_t score_stride(const HeadShape& head) {
  return up_to(head.length, edge) + panel_columns;
}

// Takes pieces of the scratch memory, in order.
struct Scratch {
  float* at;
  float* take(std::int64_t elements) {
    float* const piece = at;
    at += up_to(elements, 16);
    return piece;
  }
};

// A left factor by rows: words that a product reads (attention_unit.h).
struct Rows {
  const float* at;
  std::int64_t stride;
  const float* row(std::int64_t i) const { return at + i * stride; }
};

// A right factor in panels, for `depth` words.
struct Panels {
  float* at;
  std::int64_t depth;
  std::int64_t step() const { return depth * panel_columns; }
};

// Where the rows of a sum are made: in the tensor of a head that is one tile, else in scratch memory, whose rows are
// nearer each other, as several tiles add to them.
struct Sums {
  float* at;
  std::int64_t stride;
  bool in_place;
};

template <class T>
Sums sums_of(const HeadShape& head, T* tensor, std::int64_t stride, std::int64_t rows, Scratch& scratch) {
  const std::int64_t columns = up_to(head.width, panel_columns);
  if constexpr (std::is_same_v<T, float>) {
    if (head.length <= edge && head.width == columns) return {tensor, stride, true};
  }
  return {scratch.take(rows * columns), columns, false};
}

// What a head's products read, for one unit. T is the type of the tensors.
template <class T>
class Factors {
 public:
  Factors(const HeadShape& head, const AttentionUnit& unit, Scratch& scratch)
      : head_(head), in_pairs_(unit.in_pairs), scratch_(scratch) {}

  // Words of `n` numbers along a depth.
  std::int64_t words(std::int64_t n) const { return in_pairs_ ? (n + 1) / 2 : n; }

  // The tensor's rows: those in memory, or a copy where these aren't words.
  Rows rows(const T* from, std::int64_t stride) {
    const std::int64_t d = head_.width;
    if constexpr (std::is_same_v<T, float>) {
      return {from, stride};
    } else if (in_pairs_) {
      if (d % 2 == 0 && stride % 2 == 0) return {reinterpret_cast<const float*>(from), stride / 2};
      const std::int64_t words = up_to(d, 2) / 2;
      float* const copy = scratch_.take(head_.length * words);
      for (std::int64_t t = 0; t < head_.length; ++t) {
        copy[t * words + words - 1] = 0;
        std::memcpy(copy + t * words, from + t * stride, static_cast<std::size_t>(d) * sizeof(T));
      }
      return {copy, words};
    } else {
      float* const copy = scratch_.take(head_.length * d);
      copy_rows(from, stride, head_.length, d, copy, d);
      return {copy, d};
    }
  }

  // The transpose in panels: for products with its rows.
  Panels across(const T* from, std::int64_t stride) {
    if constexpr (std::is_same_v<T, Bf16>) {
      if (in_pairs_) {
        const Panels panels = take(pair_depth(head_.width) / 2, head_.length);
        pack_pairs_transposed(from, stride, head_.width, head_.length, reinterpret_cast<Bf16*>(panels.at));
        return panels;
      }
    }
    const Panels panels = take(head_.width, head_.length);
    pack_transposed(from, stride, head_.width, head_.length, panels.at);
    return panels;
  }

  // Itself in panels: for sums over tokens.
  Panels along(const T* from, std::int64_t stride) {
    if constexpr (std::is_same_v<T, Bf16>) {
      if (in_pairs_) {
        const Panels panels = take(pair_depth(head_.length) / 2, head_.width);
        pack_pairs(from, stride, head_.length, head_.width, reinterpret_cast<Bf16*>(panels.at));
        return panels;
      }
    }
    const Panels panels = take(head_.length, head_.width);
    pack_panels(from, stride, head_.length, head_.width, panels.at);
    return panels;
  }

 private:
  Panels take(std::int64_t depth, std::int64_t columns) {
    return {scratch_.take(panel_elements(depth, columns)), depth};
  }

  const HeadShape head_;
  const bool in_pairs_;
  Scratch& scratch_;
};

template <class T>
void forward(const HeadShape& head, const T* q, const T* k, const T* v, T* out, float* log_sums, float* memory) {
  const AttentionUnit& unit = attention_unit(T{});
  const std::int64_t length = head.length, d = head.width, columns = up_to(d, panel_columns);
  const std::int64_t most = query_block(head), stride = score_stride(head);
  Scratch scratch{memory};
  float* const scores = scratch.take(most * stride);
  const Sums gathered = sums_of(head, out, head.out_stride, most, scratch);
  float* const factors = scratch.take(most);
  Factors<T> of(head, unit, scratch);
  const Rows queries = of.rows(q, head.stride);
  const Panels keys = of.across(k, head.stride), values = of.along(v, head.stride);
  for (std::int64_t query = 0; query < length; query += most) {
    const std::int64_t rows = std::min(most, length - query), seen = query + rows;
    for (std::int64_t key = 0; key < seen; key += edge) {
      unit.multiply({.rows = rows,
                     .columns = up_to(std::min(edge, length - key), panel_columns),
                     .depth = of.words(d),
                     .left = queries.row(query),
                     .left_row = queries.stride,
                     .right = keys.at + key / panel_columns * keys.step(),
                     .panel_step = keys.step(),
                     .out = scores + key,
                     .out_row = stride,
                     .causal = Causal::columns,
                     .behind = query - key});
    }
    unit.softmax({.scores = scores,
                  .stride = stride,
                  .rows = rows,
                  .columns = up_to(seen, panel_columns),
                  .behind = query,
                  .scale = scale_of(head)},
                 factors, log_sums + query);
    for (std::int64_t key = 0; key < seen; key += value_block) {
      unit.multiply({.rows = rows,
                     .columns = columns,
                     .depth = of.words(std::min(value_block, length - key)),
                     .left = scores + of.words(key),
                     .left_row = stride,
                     .right = values.at + of.words(key) * panel_columns,
                     .panel_step = values.step(),
                     .out = gathered.at,
                     .out_row = gathered.stride,
                     .add = key > 0,
                     .factors = gathered.in_place ? factors : nullptr,
                     .causal = Causal::depth_ends,
                     .behind = query - key});
    }
    if (!gathered.in_place)
      write_scaled(gathered.at, columns, rows, d, factors, 1, out + query * head.out_stride, head.out_stride);
  }
}

// The factors of a head's backward products, and the sums of its gradients. `scales`: of each row in place.
struct Backward {
  const HeadShape head;
  const AttentionUnit& unit;
  std::int64_t columns;
  Rows queries, d_outs;
  Panels keys_across, values_across, keys_along, queries_along, d_outs_along;
  Sums d_q, d_k, d_v;
  const float* scales;
  float *scores, *d_scores, *halves, *means;
};

// The tile of the queries from `query` on and the keys from `key` on.
void backward_tile(const Backward& b, const float* log_sums, std::int64_t query, std::int64_t key) {
  const std::int64_t length = b.head.length, behind = query - key;
  const std::int64_t queries = std::min(edge, length - query), keys = std::min(edge, length - key);
  const auto words = [&](std::int64_t n) { return b.unit.in_pairs ? (n + 1) / 2 : n; };
  const ScoreTile tile{.scores = b.scores,
                       .stride = edge,
                       .rows = queries,
                       .columns = up_to(keys, panel_columns),
                       .behind = behind,
                       .scale = scale_of(b.head)};
  const auto score = [&](const Rows& left, const Panels& right, float* out) {
    b.unit.multiply({.rows = queries,
                     .columns = tile.columns,
                     .depth = words(b.head.width),
                     .left = left.row(query),
                     .left_row = left.stride,
                     .right = right.at + key / panel_columns * right.step(),
                     .panel_step = right.step(),
                     .out = out,
                     .out_row = edge,
                     .causal = Causal::columns,
                     .behind = behind});
  };
  score(b.queries, b.keys_across, b.scores);
  score(b.d_outs, b.values_across, b.d_scores);
  b.unit.softmax_backward(tile, b.d_scores, log_sums + query, b.means + query, b.halves);
  // Scores read by columns: their transpose is the left factor.
  const auto gather_keys = [&](const float* left, const Panels& right, const Sums& out, const float* factors) {
    b.unit.multiply({.rows = keys,
                     .columns = b.columns,
                     .depth = words(queries),
                     .left = left,
                     .left_row = 1,
                     .left_depth = b.unit.in_pairs ? 2 * edge : edge,
                     .right = right.at + words(query) * panel_columns,
                     .panel_step = right.step(),
                     .out = out.at + key * out.stride,
                     .out_row = out.stride,
                     .add = query > key,
                     .factors = factors,
                     .causal = Causal::depth_begins,
                     .behind = behind});
  };
  const float* const scales = b.d_q.in_place ? b.scales : nullptr;
  gather_keys(b.scores, b.d_outs_along, b.d_v, nullptr);
  gather_keys(b.d_scores, b.queries_along, b.d_k, scales);
  b.unit.multiply({.rows = queries,
                   .columns = b.columns,
                   .depth = words(keys),
                   .left = b.unit.in_pairs ? b.halves : b.d_scores,
                   .left_row = b.unit.in_pairs ? edge / 2 : edge,
                   .right = b.keys_along.at + words(key) * panel_columns,
                   .panel_step = b.keys_along.step(),
                   .out = b.d_q.at + query * b.d_q.stride,
                   .out_row = b.d_q.stride,
                   .add = key > 0,
                   .factors = scales,
                   .causal = Causal::depth_ends,
                   .behind = behind});
}

template <class T>
void backward(const HeadShape& head, const HeadGradients<T>& t, float* memory) {
  const std::int64_t length = head.length, d = head.width, columns = up_to(d, panel_columns);
  const AttentionUnit& unit = attention_unit(T{});
  Scratch scratch{memory};
  Factors<T> of(head, unit, scratch);
  const float scale = scale_of(head);
  std::array<float, edge> scales{};
  scales.fill(scale);
  const Backward b{.head = head,
                   .unit = unit,
                   .columns = columns,
                   .queries = of.rows(t.q, head.stride),
                   .d_outs = of.rows(t.d_out, head.out_stride),
                   .keys_across = of.across(t.k, head.stride),
                   .values_across = of.across(t.v, head.stride),
                   .keys_along = of.along(t.k, head.stride),
                   .queries_along = of.along(t.q, head.stride),
                   .d_outs_along = of.along(t.d_out, head.out_stride),
                   .d_q = sums_of(head, t.d_q, head.stride, length, scratch),
                   .d_k = sums_of(head, t.d_k, head.stride, length, scratch),
                   .d_v = sums_of(head, t.d_v, head.stride, length, scratch),
                   .scales = scales.data(),
                   .scores = scratch.take(edge * edge),
                   .d_scores = scratch.take(edge * edge),
                   .halves = scratch.take(edge * edge / 2),
                   .means = scratch.take(length)};
  row_products(t.d_out, t.out, head.out_stride, length, d, b.means);
  const std::int64_t near = near_keys(columns);
  for (std::int64_t first = 0; first < length; first += near) {
    for (std::int64_t query = first; query < length; query += edge) {
      const std::int64_t end = std::min(first + near, query + edge);
      for (std::int64_t key = first; key < end; key += edge) backward_tile(b, t.log_sums, query, key);
    }
  }
  if (b.d_q.in_place) return;
  write_scaled(b.d_q.at, columns, length, d, nullptr, scale, t.d_q, head.stride);
  write_scaled(b.d_k.at, columns, length, d, nullptr, scale, t.d_k, head.stride);
  write_scaled(b.d_v.at, columns, length, d, nullptr, 1, t.d_v, head.stride);
}

}  // namespace

std::int64_t attention_scratch(const HeadShape& head) {
  const std::int64_t T = up_to(head.length, 32), d = up_to(head.width, 32);  // as the panels of pairs are filled up
  const std::int64_t forward = query_block(head) * (score_stride(head) + d + 1) + 3 * T * d;
  const std::int64_t backward = 10 * T * d + edge * edge * 5 / 2 + T;
  return std::max(forward, backward) + 16 * 16;
}

void attention_forward(const HeadShape& head, const float* q, const float* k, const float* v, float* out,
                       float* log_sums, float* scratch) {
  forward(head, q, k, v, out, log_sums, scratch);
}

void attention_forward(const HeadShape& head, const Bf16* q, const Bf16* k, const Bf16* v, Bf16* out, float* log_sums,
                       float* scratch) {
  forward(head, q, k, v, out, log_sums, scratch);
}

void attention_backward(const HeadShape& head, const HeadGradients<float>& tensors, float* scratch) {
  backward(head, tensors, scratch);
}

void attention_backward(const HeadShape& head, const HeadGradients<Bf16>& tensors, float* scratch) {
  backward(head, tensors, scratch);
}

}  // namespace stepladder
