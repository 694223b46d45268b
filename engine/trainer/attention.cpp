#include "engine/trainer/attention.h"

#include <cmath>
#include <limits>

namespace stepladder {
namespace {

at::Tensor explicit_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& future) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(-1)));
  at::Tensor scores = at::matmul(q, k.transpose(-2, -1)) * scale;  // (B, heads, T, T)
  scores = scores.masked_fill(future, -std::numeric_limits<double>::infinity());
  return at::matmul(at::softmax(scores, -1), v);  // (B, heads, T, d)
}

}  // namespace

at::Tensor attend(Attention way, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const at::Tensor& future) {
  switch (way) {
    case Attention::explicit_scores:
      return explicit_attention(q, k, v, future);
    case Attention::scaled_dot_product:
      return at::scaled_dot_product_attention(q, k, v, /*attn_mask=*/{}, /*dropout_p=*/0.0, /*is_causal=*/true);
  }
  return {};
}

}  // namespace stepladder
