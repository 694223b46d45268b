#include "engine/trainer/kernels/fused_mlp.h"

#include "engine/trainer/kernels/gelu_rows.h"
#include "engine/trainer/kernels/row_blocks.h"
#include "engine/trainer/settings.h"

namespace stepladder {
namespace {

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

}  // namespace

at::Tensor fused_mlp(const at::Tensor& x, const at::Tensor& fc_weight, const at::Tensor& fc_bias,
                     const at::Tensor& proj_weight) {
  const at::ScalarType type = product_type(x);
  // Turns autocast off for the rest: the types are chosen here.
  const c10::impl::ExcludeDispatchKeyGuard by_hand(c10::autocast_dispatch_keyset);
  return FusedMlp::apply(x, fc_weight, fc_bias, proj_weight, type);
}

}  // namespace stepladder
