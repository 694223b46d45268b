// The residual add, LayerNorm (Ba et al. 2016) and the rounding for the next product in one pass, forward and backward.
// A block computes a row; each thread keeps four columns in registers, so a row may have 4,096.
#include "engine/kernels/common.cuh"

// sum = stream + added + added_bias; normed = LayerNorm(sum). `added` may be null, and then so is `sum`: the norm of
// the stream itself. `added_bias` may be null. Keeps each row's mean and 1 / standard deviation.
KERNEL __launch_bounds__(1024)
    add_norm(const float* stream, const element* added, const float* added_bias, const float* weight, const float* bias,
             float* sum, element* normed, float* mean, float* factor, int width_) {
  const int width = FIXED_WIDTH ? FIXED_WIDTH : width_;
  const int64 row = blockIdx.x;
  const int first = 4 * static_cast<int>(threadIdx.x);
  float x[4];
  read_four(stream + row * width, first, width, x);
  if (added) {
    float plus[4], shift[4] = {};
    read_four(added + row * width, first, width, plus);
    if (added_bias) read_four(added_bias, first, width, shift);
    for (int i = 0; i < 4; ++i) x[i] += plus[i] + shift[i];
    write_four(sum + row * width, first, width, x);
  }
  float total[1] = {x[0] + x[1] + x[2] + x[3]};
  block_sum(total);
  const float centre = total[0] / static_cast<float>(width);
  float squares[1] = {};
  for (int i = 0; i < 4; ++i) squares[0] += first + i < width ? (x[i] - centre) * (x[i] - centre) : 0.0f;
  block_sum(squares);
  const float scale = rsqrtf(squares[0] / static_cast<float>(width) + 1e-5f);
  float w[4], b[4];
  read_four(weight, first, width, w);
  read_four(bias, first, width, b);
  for (int i = 0; i < 4; ++i) x[i] = (x[i] - centre) * scale * w[i] + b[i];
  write_four(normed + row * width, first, width, x);
  if (threadIdx.x == 0) {
    mean[row] = centre;
    factor[row] = scale;
  }
}

// Turns d_normed, and the gradient `later` that arrives through the residual stream (null: none), into d_sum, which is
// also the gradient of `stream` and `added`; d_added is its copy for the next product (null: not needed). Block b takes
// rows b, b + gridDim.x ... and writes its sums over them to partial[b]: those of weight, bias and added_bias.
KERNEL __launch_bounds__(1024) add_norm_backward(const element* d_normed, const float* later, const float* sum,
                                                 const float* mean, const float* factor, const float* weight,
                                                 float* d_sum, element* d_added, float* partial, int rows, int width_) {
  const int width = FIXED_WIDTH ? FIXED_WIDTH : width_;
  const int first = 4 * static_cast<int>(threadIdx.x);
  float w[4], d_weight[4] = {}, d_bias[4] = {}, d_added_bias[4] = {};
  read_four(weight, first, width, w);
  for (int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    float d[4], x[4], through[4] = {};
    read_four(d_normed + row * width, first, width, d);
    read_four(sum + row * width, first, width, x);
    if (later) read_four(later + row * width, first, width, through);
    const float centre = mean[row], scale = factor[row];
    float sums[2] = {};
    for (int i = 0; i < 4; ++i) {
      x[i] = (x[i] - centre) * scale;
      d_weight[i] += d[i] * x[i];
      d_bias[i] += d[i];
      d[i] *= w[i];
      if (first + i < width) {
        sums[0] += d[i];
        sums[1] += d[i] * x[i];
      }
    }
    block_sum(sums);
    const float shift = sums[0] / static_cast<float>(width), slope = sums[1] / static_cast<float>(width);
    for (int i = 0; i < 4; ++i) {
      d[i] = scale * (d[i] - shift - x[i] * slope) + through[i];
      d_added_bias[i] += d[i];
    }
    write_four(d_sum + row * width, first, width, d);
    if (d_added) write_four(d_added + row * width, first, width, d);
  }
  float* const own = partial + static_cast<int64>(blockIdx.x) * 3 * width;
  write_four(own, first, width, d_weight);
  write_four(own + width, first, width, d_bias);
  write_four(own + 2 * width, first, width, d_added_bias);
}
