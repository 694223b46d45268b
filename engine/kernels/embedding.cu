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

// sorted[i] is the token of row order[i]. Adds the gradients of each token's rows to d_table's row. A block's threads
// are groups of `group` threads, one for every few columns: each adds up every so-many-th row of the token, and the
// first group their sums. A common token has thousands of rows, so each thread has four of them under way.
KERNEL __launch_bounds__(1024) embedding_backward(const int64* sorted, const int64* order, const float* d,
                                                  float* d_table, int rows, int width_, int group) {
  DYNAMIC_SHARED(float, sums);  // a row of each group
  const int width = FIXED_WIDTH ? FIXED_WIDTH : width_;
  const int begin = static_cast<int>(blockIdx.x);
  const int64 token = sorted[begin];
  if (begin > 0 && sorted[begin - 1] == token) return;  // the block of its first row adds up all of them
  int end = begin + 1;
  for (int beyond = rows; end < beyond;) {  // by halves
    const int middle = end + (beyond - end) / 2;
    if (sorted[middle] == token) {
      end = middle + 1;
    } else {
      beyond = middle;
    }
  }
  const int own = static_cast<int>(threadIdx.x) / group, groups = static_cast<int>(blockDim.x) / group;
  const int first = 4 * (static_cast<int>(threadIdx.x) % group);
  float sum[4] = {};
  for (int i = begin + own; i < end; i += 4 * groups) {
    float x[4][4] = {};
    for (int k = 0; k < 4; ++k)
      if (i + k * groups < end) read_four(d + order[i + k * groups] * width, first, width, x[k]);
    for (int k = 0; k < 4; ++k)
      for (int column = 0; column < 4; ++column) sum[column] += x[k][column];
  }
  write_four(sums + own * width, first, width, sum);
  __syncthreads();
  if (own > 0) return;
  read_four(d_table + token * width, first, width, sum);
  for (int other = 0; other < groups && begin + other < end; ++other) {
    float x[4];
    read_four(sums + other * width, first, width, x);
    for (int column = 0; column < 4; ++column) sum[column] += x[column];
  }
  write_four(d_table + token * width, first, width, sum);
}
