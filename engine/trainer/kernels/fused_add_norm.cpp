#include "engine/trainer/kernels/fused_add_norm.h"

#include "engine/trainer/kernels/add_norm_rows.h"
#include "engine/trainer/kernels/row_blocks.h"
#include "engine/trainer/settings.h"

namespace stepladder {
namespace {

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

}  // namespace

AddedAndNormed fused_add_norm(const at::Tensor& stream, const at::Tensor& added, const at::Tensor& added_bias,
                              const at::Tensor& weight, const at::Tensor& bias) {
  const at::ScalarType type = product_type(stream);
  // Turns autocast off for the rest: the types are chosen here.
  const c10::impl::ExcludeDispatchKeyGuard by_hand(c10::autocast_dispatch_keyset);
  const auto results = FusedAddNorm::apply(stream, added.to(type), added_bias, weight, bias);
  return {results[0], results[1]};
}

}  // namespace stepladder
