// AdamW (Loshchilov and Hutter 2019) for many tensors at once, in one pass over each: gradients are clipped on the way,
// and the weights' copies for the products are rounded while the weights are in registers. All numbers that change from
// step to step are read from the card's memory, so that a captured step reads the current ones.
#include "engine/kernels/adamw_slots.h"
#include "engine/kernels/common.cuh"

// The tensor that a chunk belongs to.
__device__ inline int slot_of(const AdamWSlots& slots, int chunk) {
  int low = 0, high = slots.count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (slots.first_chunk[middle] <= chunk) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// partial[first_partial + chunk] = the sum of the chunk's squared gradients. A chunk a block.
KERNEL __launch_bounds__(1024) gradient_squares(AdamWSlots slots, float* partial, int first_partial) {
  const int chunk = static_cast<int>(blockIdx.x), slot = slot_of(slots, chunk);
  const int64 begin = static_cast<int64>(chunk - slots.first_chunk[slot]) * adamw_chunk;
  const int64 left = slots.elements[slot] - begin;
  const int count = static_cast<int>(left < adamw_chunk ? left : adamw_chunk);
  const float* const gradient = slots.gradient[slot] + begin;
  float sum[1] = {};
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
    sum[0] += gradient[i] * gradient[i];
  block_sum(sum);
  if (threadIdx.x == 0) partial[first_partial + chunk] = sum[0];
}

// norm = sqrt(the sum of `count` partial sums); factor = min(1, highest / (norm + 1e-6)), which stays NaN if it is. One
// block.
KERNEL __launch_bounds__(1024) clip_factor(const float* partial, int count, float highest, float* norm, float* factor) {
  float sum[1] = {};
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) sum[0] += partial[i];
  block_sum(sum);
  if (threadIdx.x != 0) return;
  const float length = sqrtf(sum[0]), wanted = highest / (length + 1e-6f);
  *norm = length;
  *factor = wanted > 1.0f ? 1.0f : wanted;
}

// One update. numbers: learning rate, 1 - beta1^step, sqrt(1 - beta2^step). gradient_factor: null for 1.
KERNEL __launch_bounds__(1024)
    adamw(AdamWSlots slots, const float* numbers, const float* gradient_factor, float beta1, float beta2, float eps) {
  const int chunk = static_cast<int>(blockIdx.x), slot = slot_of(slots, chunk);
  const int64 begin = static_cast<int64>(chunk - slots.first_chunk[slot]) * adamw_chunk;
  const int64 left = slots.elements[slot] - begin;
  const int count = static_cast<int>(left < adamw_chunk ? left : adamw_chunk);
  const float lr = numbers[0], step_size = lr / numbers[1], correction2_sqrt = numbers[2];
  const float kept = 1.0f - lr * slots.weight_decay[slot], factor = gradient_factor ? *gradient_factor : 1.0f;
  bfloat16* const half = reinterpret_cast<bfloat16*>(slots.half[slot]);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    const int64 at = begin + i;
    const float gradient = slots.gradient[slot][at] * factor;
    float average = slots.average[slot][at], squared = slots.squared_average[slot][at];
    average += (1.0f - beta1) * (gradient - average);
    squared = beta2 * squared + (1.0f - beta2) * gradient * gradient;
    const float denominator = sqrtf(squared) / correction2_sqrt + eps;
    const float weight = slots.weight[slot][at] * kept - step_size * average / denominator;
    slots.average[slot][at] = average;
    slots.squared_average[slot][at] = squared;
    slots.weight[slot][at] = weight;
    if (half) round_to(weight, half[at]);
  }
}
