// The autograd function of explicit attention on a CPU. Scores become probabilities and their gradients become scores'
// gradients in place, so each (B heads, T, T) tensor exists once in either direction; only `apart` and the
// probabilities are kept for backward.
#include "engine/trainer/kernels/fused_attention.h"

#include <cmath>
#include <cstring>

#include "engine/trainer/kernels/causal_softmax_rows.h"
#include "engine/trainer/kernels/row_blocks.h"
#include "engine/trainer/settings.h"

namespace stepladder {
namespace {

// (B, T, parts x heads x d) <-> (parts, B, heads, T, d), d elements at a time.
struct Heads {
  std::int64_t B, T, parts, heads, d;

  void take_apart(const at::Tensor& rows, const at::Tensor& apart) const {
    copy([&](char* in_row, char* in_head, std::size_t bytes) { std::memcpy(in_head, in_row, bytes); }, rows, apart);
  }
  void put_together(const at::Tensor& apart, const at::Tensor& rows) const {
    copy([&](char* in_row, char* in_head, std::size_t bytes) { std::memcpy(in_row, in_head, bytes); }, rows, apart);
  }

 private:
  template <class Copy>
  void copy(const Copy& one, const at::Tensor& rows, const at::Tensor& apart) const {
    const std::int64_t bytes = d * static_cast<std::int64_t>(rows.element_size());
    char* const in_rows = static_cast<char*>(rows.mutable_data_ptr());
    char* const in_heads = static_cast<char*>(apart.mutable_data_ptr());
    RowBlocks("stepladder::split_heads", B * T, 2 * rows.nbytes())
        .run([&](std::int64_t, std::int64_t first, std::int64_t count) {
          for (std::int64_t row = first; row < first + count; ++row) {
            for (std::int64_t part = 0; part < parts; ++part) {
              for (std::int64_t head = 0; head < heads; ++head) {
                const std::int64_t there = ((part * B + row / T) * heads + head) * T + row % T;
                one(in_rows + ((row * parts + part) * heads + head) * bytes, in_heads + there * bytes,
                    static_cast<std::size_t>(bytes));
              }
            }
          }
        });
  }
};

struct FusedAttention : torch::autograd::Function<FusedAttention> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& qkv, std::int64_t heads) {
    const std::int64_t B = qkv.size(0), T = qkv.size(1), C = qkv.size(2) / 3, d = C / heads;
    const at::Tensor apart = at::empty({3, B * heads, T, d}, qkv.options());
    Heads{B, T, 3, heads, d}.take_apart(qkv.contiguous(), apart);
    const at::Tensor probabilities = at::bmm(apart[0], apart[1].transpose(1, 2));  // (B heads, T, T): still the scores
    with_type_of(probabilities, [&](auto zero) {
      using Scalar = decltype(zero);
      // Reads the lower half, and writes all.
      const RowBlocks blocks("stepladder::causal_softmax", B * heads, probabilities.nbytes() * 3 / 2);
      blocks.run([&](std::int64_t, std::int64_t first, std::int64_t count) {
        causal_softmax_rows(elements<Scalar>(probabilities) + first * T * T, count * T, T, scale(d));
      });
    });
    const at::Tensor mixed = at::bmm(probabilities, apart[2]);  // (B heads, T, d)
    at::Tensor out = at::empty({B, T, C}, qkv.options());
    Heads{B, T, 1, heads, d}.put_together(mixed, out);
    context->save_for_backward({apart, probabilities});
    context->saved_data["heads"] = heads;
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &apart = saved[0], &probabilities = saved[1];
    const at::Tensor d_out = gradients.front().contiguous();
    const std::int64_t B = d_out.size(0), T = d_out.size(1), C = d_out.size(2);
    const std::int64_t heads = context->saved_data["heads"].toInt(), d = C / heads;
    const at::Tensor d_mixed = at::empty({B * heads, T, d}, d_out.options());
    Heads{B, T, 1, heads, d}.take_apart(d_out, d_mixed);
    const at::Tensor d_apart = at::empty_like(apart);
    at::Tensor d_q = d_apart[0], d_k = d_apart[1], d_v = d_apart[2];
    at::bmm_out(d_v, probabilities.transpose(1, 2), d_mixed);
    const at::Tensor d_scores = at::bmm(d_mixed, apart[2].transpose(1, 2));  // still of the probabilities
    with_type_of(d_scores, [&](auto zero) {
      using Scalar = decltype(zero);
      // Reads the lower halves of both, and writes one.
      RowBlocks("stepladder::causal_softmax_backward", B * heads, 2 * d_scores.nbytes())
          .run([&](std::int64_t, std::int64_t first, std::int64_t count) {
            causal_softmax_backward_rows(elements<Scalar>(probabilities) + first * T * T, count * T, T, scale(d),
                                         elements<Scalar>(d_scores) + first * T * T);
          });
    });
    at::bmm_out(d_q, d_scores, apart[1]);
    at::bmm_out(d_k, d_scores.transpose(1, 2), apart[0]);
    at::Tensor d_qkv = at::empty({B, T, 3 * C}, d_out.options());
    Heads{B, T, 3, heads, d}.put_together(d_apart, d_qkv);
    return {d_qkv, {}};
  }

  static float scale(std::int64_t d) { return 1.0F / std::sqrt(static_cast<float>(d)); }
};

}  // namespace

at::Tensor fused_attention(const at::Tensor& qkv, std::int64_t heads) {
  const at::ScalarType type = product_type(qkv);
  // Turns autocast off for the rest: the types are chosen here.
  const c10::impl::ExcludeDispatchKeyGuard by_hand(c10::autocast_dispatch_keyset);
  return FusedAttention::apply(qkv.to(type), heads);
}

}  // namespace stepladder
