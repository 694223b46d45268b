// Causal attention of one head of one sequence, by tiles, forward and backward: the (T, T) matrix of scores is never in
// memory (Dao et al. 2022), and of what is after the diagonal only the rest of a vector is computed. Products are
// float32's, or of bf16 with float32 sums on CPUs that have instructions for it (attention_unit.h); probabilities and
// the scores' gradients are then rounded to bf16 too, sums over them are not. Uses no torch.
#pragma once

#include <cstdint>

#include "engine/trainer/kernels/row_loops.h"

namespace stepladder {

// Queries, keys and values are (T, d) each; `stride` elements from one token to
// the next.
struct HeadShape {
  std::int64_t length = 0;  // T
  std::int64_t width = 0;   // d
  std::int64_t stride = 0;
  std::int64_t out_stride = 0;  // of the output and its gradient
};

// Elements of scratch memory that the functions below need.
std::int64_t attention_scratch(const HeadShape& head);

// out = softmax(scale q k^T) v without the keys after the query, with scale = 1 / sqrt(d) (Vaswani et al. 2017,
// equation 1). Writes log sum exp of each query's scaled scores to `log_sums`, (T), which the backward pass needs.
void attention_forward(const HeadShape& head, const float* q, const float* k, const float* v, float* out,
                       float* log_sums, float* scratch);
void attention_forward(const HeadShape& head, const Bf16* q, const Bf16* k, const Bf16* v, Bf16* out, float* log_sums,
                       float* scratch);

// Computes the probabilities p of each tile again. With d_p = d_out v^T and d_s = scale p (d_p - sum(d_out out)):
// d_v = p^T d_out, d_q = d_s k, d_k = d_s^T q.
template <class T>
struct HeadGradients {
  const T *q, *k, *v, *out;
  const float* log_sums;
  const T* d_out;
  T *d_q, *d_k, *d_v;  // with the stride of q, k and v
};
void attention_backward(const HeadShape& head, const HeadGradients<float>& tensors, float* scratch);
void attention_backward(const HeadShape& head, const HeadGradients<Bf16>& tensors, float* scratch);

}  // namespace stepladder
