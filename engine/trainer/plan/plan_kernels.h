// The kernels that a plan calls, each of which can be replaced by others with the same contract. Uses no torch.
#pragma once

#include "engine/trainer/kernels/add_norm_rows.h"
#include "engine/trainer/kernels/gelu_rows.h"
#include "engine/trainer/kernels/softmax_rows.h"
#include "engine/trainer/plan/attention_tiles.h"
#include "engine/trainer/plan/plan_loops.h"
#include "engine/trainer/plan/product_ways.h"

namespace stepladder {

// T is the type of the products' inputs and outputs: float or Bf16. Any thread calls any of them.
template <class T>
struct PlanKernels {
  PlanProducts<T> products = PlanProducts<T>::all_by(own_way<T>());

  void (*add_norm)(NormShape shape, const float* stream, const T* added, const float* added_bias, const float* weight,
                   const float* bias, float eps, float* sum, T* out, float* mean, float* factor) = add_norm_rows;
  void (*add_norm_backward)(NormShape shape, const T* d_out, const float* later, const float* sum, const float* mean,
                            const float* factor, const float* weight, float* d_sum, T* d_added,
                            NormSums sums) = add_norm_backward_rows;

  void (*attention)(const HeadShape& head, const T* q, const T* k, const T* v, T* out, float* log_sums,
                    float* scratch) = attention_forward;
  void (*attention_backward)(const HeadShape& head, const HeadGradients<T>& tensors,
                             float* scratch) = stepladder::attention_backward;

  // The first one overwrites `before` with values that only the second one reads.
  void (*gelu)(T* before_then_kept, const float* bias, std::int64_t rows, std::int64_t width, T* after) = gelu_rows;
  void (*gelu_backward)(const T* kept, std::int64_t rows, std::int64_t width, T* gradient,
                        float* d_bias) = gelu_backward_rows;

  void (*softmax)(float* logits, std::int64_t rows, std::int64_t stride, std::int64_t vocab,
                  const std::int64_t* targets, float scale, double* losses) = softmax_rows;

  void (*adamw)(const AdamWNumbers& numbers, const float* gradient, std::int64_t elements, float* weight,
                float* average, float* squared_average) = stepladder::adamw;
};

}  // namespace stepladder
