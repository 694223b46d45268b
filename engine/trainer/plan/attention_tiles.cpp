// Flash attention for one head on a CPU, 64 x 64 tiles at a time, in scratch memory of the calling worker.
// attention_scratch must cover what `forward` and `backward` take from Scratch; nothing checks it at run time.
#include "engine/trainer/plan/attention_tiles.h"

#include <cmath>
#include <limits>

#include "engine/trainer/plan/products.h"

namespace stepladder {
namespace {

constexpr std::int64_t edge = 64;  // of a tile

std::int64_t padded(std::int64_t elements) {
  return (elements + 15) / 16 * 16;
}

float scale_of(const HeadShape& head) {
  return 1.0F / std::sqrt(static_cast<float>(head.width));
}

// Takes pieces of the scratch memory, in order.
struct Scratch {
  float* at;
  float* take(std::int64_t elements) {
    float* const piece = at;
    at += padded(elements);
    return piece;
  }
};

// Rows as products read them on their left, (length, width) float32: those in
// memory, or a widened copy.
struct Rows {
  const float* at;
  std::int64_t stride;
};

template <class T>
Rows rows_of(const T* from, std::int64_t stride, const HeadShape& head, Scratch& scratch) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return {from, stride};
  } else {
    float* const copy = scratch.take(head.length * head.width);
    for (std::int64_t t = 0; t < head.length; ++t) {
      for (std::int64_t i = 0; i < head.width; ++i) copy[t * head.width + i] = load(from[t * stride + i]);
    }
    return {copy, head.width};
  }
}

// The number of a row's `columns` keys that it attends to; the first key is `behind` queries before the row's.
STEPLADDER_IN_LOOP std::int64_t visible(std::int64_t columns, std::int64_t behind) {
  return std::min(columns, behind + 1);
}

// One tile of the running softmax: scores (rows, columns; edge apart) become
// exp(scale score - highest), the row's highest and sum are brought up to date,
// and what the row has gathered so far, (width), is scaled to the new highest.
// Row i's query is `behind` + i after the tile's first key.
STEPLADDER_FOR_EACH_CPU
void soften(float* scores, std::int64_t rows, std::int64_t columns, std::int64_t behind, float scale, float* highest,
            float* sum, float* gathered, std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row, scores += edge, gathered += width) {
    const std::int64_t seen = visible(columns, behind + row);
    float top = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : top)
    for (std::int64_t i = 0; i < seen; ++i) top = std::max(top, scores[i]);
    top = std::max(highest[row], top * scale);
    const float factor = exp_of_negative(highest[row] - top);
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (std::int64_t i = 0; i < seen; ++i) {
      const float e = exp_of_negative(scores[i] * scale - top);
      scores[i] = e;
      total += e;
    }
    std::fill(scores + seen, scores + columns, 0.0F);
    sum[row] = sum[row] * factor + total;
    highest[row] = top;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) gathered[i] *= factor;
  }
}

// Scores become probabilities, and their gradients d_p become d_s in place.
STEPLADDER_FOR_EACH_CPU
void soften_backward(float* scores, float* d_scores, std::int64_t rows, std::int64_t columns, std::int64_t behind,
                     float scale, const float* log_sums, const float* means) {
  for (std::int64_t row = 0; row < rows; ++row, scores += edge, d_scores += edge) {
    const std::int64_t seen = visible(columns, behind + row);
    const float log_sum = log_sums[row], mean = means[row];
#pragma omp simd
    for (std::int64_t i = 0; i < seen; ++i) {
      const float p = exp_of_negative(scores[i] * scale - log_sum);
      scores[i] = p;
      d_scores[i] = scale * p * (d_scores[i] - mean);
    }
    std::fill(scores + seen, scores + columns, 0.0F);
    std::fill(d_scores + seen, d_scores + columns, 0.0F);
  }
}

template <class T>
STEPLADDER_IN_LOOP void divided(const float* from, std::int64_t rows, std::int64_t width, const float* by, T* to,
                                std::int64_t stride) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float factor = by ? 1.0F / by[row] : 1.0F;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) store(to[row * stride + i], from[row * width + i] * factor);
  }
}

template <class T>
STEPLADDER_IN_LOOP float dot(const T* a, const T* b, std::int64_t width) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < width; ++i) sum += load(a[i]) * load(b[i]);
  return sum;
}

template <class T>
void forward(const HeadShape& head, const T* q, const T* k, const T* v, T* out, float* log_sums, float* memory) {
  const std::int64_t length = head.length, d = head.width;
  Scratch scratch{memory};
  float* const keys = scratch.take(panel_elements(d, length));    // k^T
  float* const values = scratch.take(panel_elements(length, d));  // v
  float* const scores = scratch.take(edge * edge);
  float* const gathered = scratch.take(edge * d);
  float* const highest = scratch.take(edge);
  float* const sum = scratch.take(edge);
  const Rows queries = rows_of(q, head.stride, head, scratch);
  pack_transposed(k, head.stride, d, length, keys);
  pack_panels(v, head.stride, length, d, values);
  for (std::int64_t query = 0; query < length; query += edge) {
    const std::int64_t rows = std::min(edge, length - query);
    std::fill(highest, highest + rows, -std::numeric_limits<float>::infinity());
    std::fill(sum, sum + rows, 0.0F);
    std::fill(gathered, gathered + rows * d, 0.0F);
    for (std::int64_t key = 0; key <= query; key += edge) {
      const std::int64_t columns = std::min(edge, length - key);
      multiply({.rows = rows,
                .columns = columns,
                .depth = d,
                .left = queries.at + query * queries.stride,
                .left_row = queries.stride,
                .out = scores,
                .out_row = edge},
               keys + key * d);
      soften(scores, rows, columns, query - key, scale_of(head), highest, sum, gathered, d);
      multiply({.rows = rows,
                .columns = d,
                .depth = columns,
                .left = scores,
                .left_row = edge,
                .panel_depth = length,
                .out = gathered,
                .out_row = d,
                .add = true},
               values + key * panel_columns);
    }
    divided(gathered, rows, d, sum, out + query * head.out_stride, head.out_stride);
    for (std::int64_t row = 0; row < rows; ++row) log_sums[query + row] = highest[row] + std::log(sum[row]);
  }
}

// The right and left factors of a head's backward products, and the sums of its
// gradients, (T, d) each.
struct Backward {
  float *keys, *keys_across, *values_across, *queries,
      *d_outs;  // panels; "across": transposed
  float *d_q, *d_k, *d_v;
  Rows query_rows, d_out_rows;
  float *scores, *d_scores, *means;
};

// The tile of `rows` queries from `query` on and `columns` keys from `key` on.
void backward_tile(const HeadShape& head, const Backward& b, const float* log_sums, std::int64_t query,
                   std::int64_t key) {
  const std::int64_t length = head.length, d = head.width;
  const std::int64_t rows = std::min(edge, length - query), columns = std::min(edge, length - key);
  Product across{.rows = rows, .columns = columns, .depth = d, .out_row = edge};
  across.left = b.query_rows.at + query * b.query_rows.stride;
  across.left_row = b.query_rows.stride;
  across.out = b.scores;
  multiply(across, b.keys_across + key * d);
  across.left = b.d_out_rows.at + query * b.d_out_rows.stride;
  across.left_row = b.d_out_rows.stride;
  across.out = b.d_scores;
  multiply(across, b.values_across + key * d);
  soften_backward(b.scores, b.d_scores, rows, columns, query - key, scale_of(head), log_sums + query, b.means + query);
  // Scores read by columns: their transpose is the left factor.
  Product down{.rows = columns,
               .columns = d,
               .depth = rows,
               .left_row = 1,
               .left_depth = edge,
               .panel_depth = length,
               .out_row = d,
               .add = true};
  down.left = b.scores;
  down.out = b.d_v + key * d;
  multiply(down, b.d_outs + query * panel_columns);
  down.left = b.d_scores;
  down.out = b.d_k + key * d;
  multiply(down, b.queries + query * panel_columns);
  multiply({.rows = rows,
            .columns = d,
            .depth = columns,
            .left = b.d_scores,
            .left_row = edge,
            .panel_depth = length,
            .out = b.d_q + query * d,
            .out_row = d,
            .add = true},
           b.keys + key * panel_columns);
}

template <class T>
void backward(const HeadShape& head, const HeadGradients<T>& t, float* memory) {
  const std::int64_t length = head.length, d = head.width;
  Scratch scratch{memory};
  Backward b;
  for (float** panels : {&b.keys_across, &b.values_across}) *panels = scratch.take(panel_elements(d, length));
  for (float** panels : {&b.keys, &b.queries, &b.d_outs}) *panels = scratch.take(panel_elements(length, d));
  for (float** sums : {&b.d_q, &b.d_k, &b.d_v}) {
    *sums = scratch.take(length * d);
    std::fill(*sums, *sums + length * d, 0.0F);
  }
  b.scores = scratch.take(edge * edge);
  b.d_scores = scratch.take(edge * edge);
  b.means = scratch.take(length);
  b.query_rows = rows_of(t.q, head.stride, head, scratch);
  b.d_out_rows = rows_of(t.d_out, head.out_stride, head, scratch);
  pack_transposed(t.k, head.stride, d, length, b.keys_across);
  pack_transposed(t.v, head.stride, d, length, b.values_across);
  pack_panels(t.k, head.stride, length, d, b.keys);
  pack_panels(t.q, head.stride, length, d, b.queries);
  pack_panels(t.d_out, head.out_stride, length, d, b.d_outs);
  for (std::int64_t i = 0; i < length; ++i)
    b.means[i] = dot(t.d_out + i * head.out_stride, t.out + i * head.out_stride, d);
  for (std::int64_t key = 0; key < length; key += edge) {
    for (std::int64_t query = key; query < length; query += edge) backward_tile(head, b, t.log_sums, query, key);
  }
  divided(b.d_q, length, d, nullptr, t.d_q, head.stride);
  divided(b.d_k, length, d, nullptr, t.d_k, head.stride);
  divided(b.d_v, length, d, nullptr, t.d_v, head.stride);
}

}  // namespace

std::int64_t attention_scratch(const HeadShape& head) {
  const std::int64_t panels = 2 * panel_elements(head.width, head.length) + 3 * panel_elements(head.length, head.width);
  return panels + 5 * padded(head.length * head.width) + 2 * edge * edge + edge * head.width + 2 * edge +
         padded(head.length) + 64;
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
