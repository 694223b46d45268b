// The parts of a block as autograd functions, each with everything between its products in one pass, and the blocks
// made of them.
#include "engine/trainer/kernels/fused_blocks.h"

#include <cmath>
#include <cstring>

#include "engine/trainer/kernels/add_norm_rows.h"
#include "engine/trainer/kernels/causal_softmax_rows.h"
#include "engine/trainer/kernels/gelu_rows.h"
#include "engine/trainer/kernels/row_blocks.h"
#include "engine/trainer/profile/model_range.h"
#include "engine/trainer/settings.h"

namespace stepladder {
namespace {

// Scores become probabilities and their gradients become scores' gradients in place, so each (B heads, T, T) tensor
// exists once in either direction; only `apart` and the probabilities are kept for backward.

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

struct FusedMlp : torch::autograd::Function<FusedMlp> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& fc_weight,
                            const at::Tensor& fc_bias, const at::Tensor& proj_weight, at::ScalarType type) {
    const at::Tensor rows = x.reshape({-1, x.size(-1)}).to(type);  // (N, C)
    const at::Tensor fc = fc_weight.to(type), proj = proj_weight.to(type);
    const at::Tensor bias = fc_bias.to(at::kFloat).contiguous();
    const at::Tensor slope = at::mm(rows, fc.t());  // (N, D): still the input of GELU
    const at::Tensor after = at::empty_like(slope);
    const std::int64_t D = slope.size(1);
    with_type_of(slope, [&](auto zero) {
      using T = decltype(zero);
      // Reads and writes `slope`.
      const RowBlocks blocks("stepladder::gelu", slope.size(0), 3 * slope.nbytes());
      blocks.run([&](std::int64_t, std::int64_t first, std::int64_t count) {
        gelu_rows(elements<T>(slope) + first * D, elements<float>(bias), count, D, elements<T>(after) + first * D);
      });
    });
    context->save_for_backward({rows, fc, proj, slope, after});
    context->saved_data["types"] = std::vector<std::int64_t>{static_cast<std::int64_t>(x.scalar_type()),
                                                             static_cast<std::int64_t>(fc_weight.scalar_type())};
    auto shape = x.sizes().vec();
    shape.back() = proj.size(0);
    return at::mm(after, proj.t()).view(shape);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &rows = saved[0], &fc = saved[1], &proj = saved[2], &slope = saved[3], &after = saved[4];
    const auto types = context->saved_data["types"].toIntVector();
    const auto x_type = static_cast<at::ScalarType>(types[0]), weight_type = static_cast<at::ScalarType>(types[1]);
    const at::Tensor d_out = gradients.front().reshape({-1, proj.size(0)});  // (N, C)
    const at::Tensor d_proj = at::mm(d_out.t(), after);
    const at::Tensor gradient = at::mm(d_out, proj);  // (N, D): of `after`, then of GELU's input
    const std::int64_t D = gradient.size(1);
    // Reads and writes `gradient`.
    const RowBlocks blocks("stepladder::gelu_backward", gradient.size(0), slope.nbytes() + 2 * gradient.nbytes());
    const at::Tensor d_bias = at::zeros({blocks.count(), D}, at::kFloat);
    with_type_of(gradient, [&](auto zero) {
      using T = decltype(zero);
      blocks.run([&](std::int64_t block, std::int64_t first, std::int64_t count) {
        gelu_backward_rows(elements<T>(slope) + first * D, count, D, elements<T>(gradient) + first * D,
                           elements<float>(d_bias) + block * D);
      });
    });
    auto shape = gradients.front().sizes().vec();
    shape.back() = fc.size(1);
    return {at::mm(gradient, fc).view(shape).to(x_type),
            at::mm(gradient.t(), rows).to(weight_type),
            d_bias.sum(0).to(weight_type),
            d_proj.to(weight_type),
            {}};
  }
};

constexpr float eps = 1e-5F;

struct FusedAddNorm : torch::autograd::Function<FusedAddNorm> {
  // `added` has the type that `normed` gets.
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context, const at::Tensor& stream,
                                                const at::Tensor& added, const at::Tensor& added_bias,
                                                const at::Tensor& weight, const at::Tensor& bias) {
    const at::Tensor from = stream.contiguous(), plus = added.contiguous();
    const at::Tensor sum = at::empty(from.sizes(), from.options()), normed = at::empty(plus.sizes(), plus.options());
    const std::int64_t C = stream.size(-1), N = stream.numel() / C;
    const at::Tensor mean = at::empty({N}, sum.options()), factor = at::empty({N}, sum.options());
    with_type_of(plus, [&](auto zero) {
      using T = decltype(zero);
      RowBlocks("stepladder::add_norm", N, 2 * (sum.nbytes() + normed.nbytes()))
          .run([&](std::int64_t, std::int64_t first, std::int64_t count) {
            add_norm_rows({count, C}, elements<float>(from) + first * C, elements<T>(plus) + first * C,
                          elements<float>(added_bias), elements<float>(weight), elements<float>(bias), eps,
                          elements<float>(sum) + first * C, elements<T>(normed) + first * C,
                          elements<float>(mean) + first, elements<float>(factor) + first);
          });
    });
    context->save_for_backward({sum, weight, mean, factor});
    context->set_materialize_grads(false);  // nothing uses the last norm's sum
    return {sum, normed};
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &sum = saved[0], &weight = saved[1], &mean = saved[2], &factor = saved[3];
    if (!gradients[1].defined()) return {gradients[0], gradients[0], {}, {}, {}};
    const at::Tensor d_normed = gradients[1].contiguous();
    const at::Tensor later = gradients[0].defined() ? gradients[0].contiguous() : at::Tensor();
    const std::int64_t C = sum.size(-1);
    const at::Tensor d_sum = at::empty(sum.sizes(), sum.options());
    const bool same_type = d_normed.scalar_type() == at::kFloat;
    const at::Tensor d_added = same_type ? d_sum : at::empty(sum.sizes(), d_normed.options());
    const std::size_t moved = d_normed.nbytes() + (later.defined() ? later.nbytes() : 0) + sum.nbytes() +
                              d_sum.nbytes() + (same_type ? 0 : d_added.nbytes());
    const RowBlocks blocks("stepladder::add_norm_backward", sum.numel() / C, moved);
    const at::Tensor sums = at::zeros({blocks.count(), 3, C}, sum.options());  // of weight, bias, added_bias
    with_type_of(d_normed, [&](auto zero) {
      using T = decltype(zero);
      blocks.run([&](std::int64_t block, std::int64_t first, std::int64_t count) {
        float* const own = elements<float>(sums) + block * 3 * C;
        add_norm_backward_rows({count, C}, elements<T>(d_normed) + first * C,
                               later.defined() ? elements<float>(later) + first * C : nullptr,
                               elements<float>(sum) + first * C, elements<float>(mean) + first,
                               elements<float>(factor) + first, elements<float>(weight),
                               elements<float>(d_sum) + first * C,
                               same_type ? nullptr : elements<T>(d_added) + first * C, {own, own + C, own + 2 * C});
      });
    });
    const auto total = sums.sum(0).unbind(0);
    return {d_sum, d_added, total[2], total[0], total[1]};
  }
};

// Excludes the bias of its last product, as fused_mlp does: the add that follows includes it.
at::Tensor attention(const SelfAttention& layer, const at::Tensor& x) {
  const at::Tensor mixed = layer.way == Attention::explicit_scores
                               ? fused_attention(layer.c_attn->forward(x), layer.heads)
                               : layer.mix(x, {});
  return at::linear(mixed, layer.c_proj->weight);
}

}  // namespace

at::Tensor fused_attention(const at::Tensor& qkv, std::int64_t heads) {
  const at::ScalarType type = product_type(qkv);
  // Turns autocast off for the rest: the types are chosen here.
  const c10::impl::ExcludeDispatchKeyGuard by_hand(c10::autocast_dispatch_keyset);
  return FusedAttention::apply(qkv.to(type), heads);
}

at::Tensor fused_mlp(const at::Tensor& x, const at::Tensor& fc_weight, const at::Tensor& fc_bias,
                     const at::Tensor& proj_weight) {
  const at::ScalarType type = product_type(x);
  // Turns autocast off for the rest: the types are chosen here.
  const c10::impl::ExcludeDispatchKeyGuard by_hand(c10::autocast_dispatch_keyset);
  return FusedMlp::apply(x, fc_weight, fc_bias, proj_weight, type);
}

AddedAndNormed fused_add_norm(const at::Tensor& stream, const at::Tensor& added, const at::Tensor& added_bias,
                              const at::Tensor& weight, const at::Tensor& bias) {
  const at::ScalarType type = product_type(stream);
  // Turns autocast off for the rest: the types are chosen here.
  const c10::impl::ExcludeDispatchKeyGuard by_hand(c10::autocast_dispatch_keyset);
  const auto results = FusedAddNorm::apply(stream, added.to(type), added_bias, weight, bias);
  return {results[0], results[1]};
}

at::Tensor fused_blocks(const std::vector<std::shared_ptr<Block>>& blocks, const LayerNorm& last, const at::Tensor& x) {
  // Each norm follows an add, so a loop over norms includes each add: the previous block's.
  AddedAndNormed state{x, blocks.front()->ln_1->forward(x)};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Block& block = *blocks[i];
    const LayerNorm& next = i + 1 < blocks.size() ? *blocks[i + 1]->ln_1 : last;
    {
      const ModelRange range("attn", static_cast<int>(i));
      state = fused_add_norm(state.sum, attention(*block.attn, state.normed), block.attn->c_proj->bias,
                             block.ln_2->weight, block.ln_2->bias);
    }
    const ModelRange range("mlp", static_cast<int>(i));
    const Mlp& mlp = *block.mlp;
    const at::Tensor added = fused_mlp(state.normed, mlp.c_fc->weight, mlp.c_fc->bias, mlp.c_proj->weight);
    state = fused_add_norm(state.sum, added, mlp.c_proj->bias, next.weight, next.bias);
  }
  return state.normed;
}

}  // namespace stepladder
