// The inner loops of attention's tiles (attention_tiles.h), once for each kind of vector unit. Numbers are counted in
// words of 32 bits: a float32, or two bf16 that are neighbours along a product's depth. Uses no torch.
#pragma once

#include <cstdint>

#include "engine/trainer/kernels/row_loops.h"

namespace stepladder {

// What a causal product can leave out. Row i of a tile of scores is a query, `behind` + i tokens after the tile's first
// key; it sees that key and the `behind` + i ones after it.
enum class Causal {
  whole,        // nothing
  columns,      // scores = q k^T: the columns of keys that a row of queries doesn't see
  depth_ends,   // p v: the same keys, along the depth
  depth_begins  // p^T d_out: the rows are keys, and queries before them along the depth
};

// out = left right, or out += left right if `add`, in whole panels: `columns` is a multiple of 16, and panel p of the
// right factor has the columns [16 p, 16 p + 16), one line of 16 words for each word of the depth (products.h,
// pair_products.h). Element (i, k) of the left factor is left[i left_row + k left_depth]. Each sum has one order,
// whatever is left out for other rows.
struct TileProduct {
  std::int64_t rows = 0, columns = 0, depth = 0;  // depth: words
  const float* left = nullptr;
  std::int64_t left_row = 0, left_depth = 1;
  const float* right = nullptr;
  std::int64_t panel_step = 0;  // from panel to panel
  float* out = nullptr;
  std::int64_t out_row = 0;
  bool add = false;
  const float* factors = nullptr;  // of each row; null: 1
  Causal causal = Causal::whole;
  std::int64_t behind = 0;
};

// Scores of `rows` queries and `columns` keys (a multiple of 16), `stride` from row to row.
struct ScoreTile {
  float* scores = nullptr;
  std::int64_t stride = 0, rows = 0, columns = 0, behind = 0;
  float scale = 0;
};

struct AttentionUnit {
  const char* name;
  bool in_pairs;  // two bf16 in a word

  void (*multiply)(const TileProduct& product);

  // Row by row, scores become exp(scale (score - the row's highest)), and 0 for keys that the query doesn't see: in
  // float32 or, for pairs, in bf16 at the row's begin. Writes one over each row's sum, and log sum exp(scale score).
  void (*softmax)(const ScoreTile& tile, float* factors, float* log_sums);

  // Scores become probabilities p, and their gradients d_p become p (d_p - mean). For pairs, both are written as the
  // left factors of the products that follow: rows 2 i and 2 i + 1 as the words of row 2 i, and the gradients in rows
  // of bf16 too, `stride` / 2 words apart, in `halves`.
  void (*softmax_backward)(const ScoreTile& tile, float* d_scores, const float* log_sums, const float* means,
                           float* halves);
};

// The fastest unit of this CPU for this type of input; bf16 on a CPU without instructions for it is widened, and takes
// float32's. Follows use_vector_unit and use_pair_unit (products.h, pair_products.h).
const AttentionUnit& attention_unit(float);
const AttentionUnit& attention_unit(Bf16);

}  // namespace stepladder
