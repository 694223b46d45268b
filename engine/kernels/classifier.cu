// Softmax, loss and the gradient of the logits in one pass over a row, in place: a row is read from the card's memory
// once and written once. While it is read, each thread keeps a running maximum and the sum of exponentials below it
// (Milakov and Gimelshein 2018); the row itself waits in shared memory, or, where that is too small, in the cache.
#include "engine/kernels/common.cuh"

struct SoftmaxState {
  float highest, sum;  // of e^(x - highest)
};

// Four logits at once, so that the sum is rescaled once for all of them. Ends in NaN for an infinite or undefined
// logit, as in the plain way.
__device__ inline void include(SoftmaxState& state, const float (&x)[4]) {
  const float highest = fmaxf(fmaxf(fmaxf(x[0], x[1]), fmaxf(x[2], x[3])), state.highest);  // skips NaN
  if (highest == minus_infinity()) {
    for (int i = 0; i < 4; ++i)
      if (x[i] != x[i]) state.sum = x[i];
    return;
  }
  float sum = 0.0f;
  for (int i = 0; i < 4; ++i) sum += exp_fast(x[i] - highest);
  state.sum = state.sum * exp_fast(state.highest - highest) + sum;
  state.highest = highest;
}

__device__ inline SoftmaxState merged(SoftmaxState a, SoftmaxState b) {
  const float highest = a.highest > b.highest ? a.highest : b.highest;
  if (highest == minus_infinity()) return {highest, a.sum + b.sum};
  return {highest, a.sum * exp_fast(a.highest - highest) + b.sum * exp_fast(b.highest - highest)};
}

__device__ inline SoftmaxState block_merged(SoftmaxState state) {
  __shared__ SoftmaxState of_warps[32];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int step = 16; step > 0; step /= 2) {
    state = merged(state,
                   {__shfl_xor_sync(0xffffffffu, state.highest, step), __shfl_xor_sync(0xffffffffu, state.sum, step)});
  }
  if (lane == 0) of_warps[warp] = state;
  __syncthreads();
  state = lane < static_cast<int>(blockDim.x) / 32 ? of_warps[lane] : SoftmaxState{minus_infinity(), 0.0f};
  for (int step = 16; step > 0; step /= 2) {
    state = merged(state,
                   {__shfl_xor_sync(0xffffffffu, state.highest, step), __shfl_xor_sync(0xffffffffu, state.sum, step)});
  }
  return state;
}

// One row for each block. Logits beyond `vocab` are padding: they are ignored, and their gradient is 0. losses[row] is
// the row's loss in nats. With `scale` above 0 the logits become their gradient times `scale`; with 0 they stay.
// `in_shared`: the launch has shared memory for a row.
KERNEL __launch_bounds__(1024) classifier(element* logits, const int64* targets, float* losses, int vocab_,
                                          int padded_vocab_, float scale, int in_shared) {
  DYNAMIC_SHARED(element, kept);
  const int vocab = FIXED_VOCAB ? FIXED_VOCAB : vocab_;
  const int padded_vocab = FIXED_PADDED_VOCAB ? FIXED_PADDED_VOCAB : padded_vocab_;
  const int64 row = blockIdx.x;
  element* const own = logits + row * padded_vocab;
  const int target = static_cast<int>(targets[row]);
  const float target_logit = to_float(own[target]);  // before another thread overwrites it
  const int stride = 4 * static_cast<int>(blockDim.x);
  SoftmaxState state{minus_infinity(), 0.0f};
  for (int first = 4 * static_cast<int>(threadIdx.x); first < vocab; first += stride) {
    const Four<element> four = load_four(own, first, padded_vocab);
    if (in_shared) store_four(kept, first, padded_vocab, four);
    float x[4];
    for (int i = 0; i < 4; ++i) x[i] = first + i < vocab ? to_float(four.of[i]) : minus_infinity();
    include(state, x);
  }
  state = block_merged(state);
  if (threadIdx.x == 0) losses[row] = state.highest + logf(state.sum) - target_logit;
  if (scale <= 0.0f) return;
  const float share = scale / state.sum;
  for (int first = 4 * static_cast<int>(threadIdx.x); first < padded_vocab; first += stride) {
    float x[4] = {};
    if (first < vocab) read_four(in_shared ? kept : own, first, padded_vocab, x);
    for (int i = 0; i < 4; ++i) x[i] = first + i < vocab ? share * exp_fast(x[i] - state.highest) : 0.0f;
    if (target >= first && target < first + 4)
      for (int i = 0; i < 4; ++i) x[i] -= first + i == target ? scale : 0.0f;
    write_four(own, first, padded_vocab, x);
  }
}
