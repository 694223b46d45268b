// Token and position embeddings, and the token table's gradient without atomic additions: tokens are sorted, and one
// block adds up all rows of its token in their order, so the same inputs give the same bits.
#include "engine/kernels/common.cuh"

// out[row] = table[tokens[row]] + positions[row % length], a row a block, four columns a thread.
KERNEL __launch_bounds__(1024)
    embedding(const float* table, const float* positions, const int64* tokens, float* out, int length, int width_) {
  const int width = FIXED_WIDTH ? FIXED_WIDTH : width_;
  const int64 row = blockIdx.x;
  const int first = 4 * static_cast<int>(threadIdx.x);
  float x[4], position[4];
  read_four(table + tokens[row] * width, first, width, x);
  read_four(positions + row % length * width, first, width, position);
  for (int i = 0; i < 4; ++i) x[i] += position[i];
  write_four(out + row * width, first, width, x);
}

// sorted[i] is the token of row order[i]. Adds the gradients of each token's rows to d_table's row.
KERNEL __launch_bounds__(1024)
    embedding_backward(const int64* sorted, const int64* order, const float* d, float* d_table, int rows, int width_) {
  const int width = FIXED_WIDTH ? FIXED_WIDTH : width_;
  const int begin = static_cast<int>(blockIdx.x);
  const int64 token = sorted[begin];
  if (begin > 0 && sorted[begin - 1] == token) return;  // the block of its first row adds up all of them
  int end = begin + 1;
  while (end < rows && sorted[end] == token) ++end;
  const int first = 4 * static_cast<int>(threadIdx.x);
  float sum[4];
  read_four(d_table + token * width, first, width, sum);
  for (int i = begin; i < end; ++i) {
    float x[4];
    read_four(d + order[i] * width, first, width, x);
    for (int k = 0; k < 4; ++k) sum[k] += x[k];
  }
  write_four(d_table + token * width, first, width, sum);
}
