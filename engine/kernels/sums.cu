// Sums over rows: gradients of biases, and the last step of all sums that blocks have begun. The order of the additions
// follows from the shape, so the same inputs give the same bits.
#include "engine/kernels/common.cuh"

// out[c] = the sum of partial[p][c] over `count` rows p. 32 columns a block of 1,024 threads.
KERNEL __launch_bounds__(1024) column_sums(const float* partial, int count, int columns, float* out) {
  __shared__ float of_slices[32][33];
  const int lane = static_cast<int>(threadIdx.x) % 32, slice = static_cast<int>(threadIdx.x) / 32;
  const int column = static_cast<int>(blockIdx.x) * 32 + lane;
  float sum = 0;
  if (column < columns) {
    for (int row = slice; row < count; row += 32) sum += partial[static_cast<int64>(row) * columns + column];
  }
  of_slices[slice][lane] = sum;
  __syncthreads();
  // A warp takes a column, so that the last additions are shuffles.
  const float total = warp_sum(of_slices[lane][slice]);
  const int own = static_cast<int>(blockIdx.x) * 32 + slice;
  if (lane == 0 && own < columns) out[own] = total;
}

// partial[s][c] = the sum of d[r][c] over the rows r = s, s + gridDim.y ...; a thread takes four columns.
KERNEL __launch_bounds__(1024) bias_gradient(const element* d, int rows, int columns, float* partial) {
  const int first = 4 * static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  float sum[4] = {};
  for (int64 row = blockIdx.y; row < rows; row += gridDim.y) {
    float values[4];
    read_four(d + row * columns, first, columns, values);
    for (int i = 0; i < 4; ++i) sum[i] += values[i];
  }
  write_four(partial + static_cast<int64>(blockIdx.y) * columns, first, columns, sum);
}
