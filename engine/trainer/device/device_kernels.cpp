// Launch shapes and arguments of each CUDA kernel. Argument types and order must match engine/kernels/*.cu, which no
// compiler checks. Each function begins with LibTorch's equivalent, which runs if the recipe replaces the kernel and
// which the tests compare with.
#include "engine/trainer/device/device_kernels.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "engine/kernel_parts.h"

namespace stepladder {
namespace {

constexpr double eps = 1e-5;  // of LayerNorm, as in add_norm.cu

float* floats(const at::Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  TORCH_INTERNAL_ASSERT(tensor.is_contiguous() && tensor.scalar_type() == at::kFloat);
  return tensor.mutable_data_ptr<float>();
}

// A kernel's `element*`.
void* elements(const at::Tensor& tensor, at::ScalarType type) {
  if (!tensor.defined()) return nullptr;
  TORCH_INTERNAL_ASSERT(tensor.is_contiguous() && tensor.scalar_type() == type);
  return tensor.mutable_data_ptr();
}

const std::int64_t* tokens_of(const at::Tensor& tensor) {
  TORCH_INTERNAL_ASSERT(tensor.is_contiguous() && tensor.scalar_type() == at::kLong);
  return tensor.const_data_ptr<std::int64_t>();
}

at::Tensor with_bias(const at::Tensor& x, const at::Tensor& bias) {
  return bias.defined() ? x.to(at::kFloat) + bias : x.to(at::kFloat);
}

int count_of(std::int64_t number) {
  TORCH_CHECK(number <= std::numeric_limits<int>::max(), "too many rows or columns for the kernels: ", number);
  return static_cast<int>(number);
}

}  // namespace

DeviceParts device_parts(const Recipe& recipe) {
  const std::set<std::string> left_out = kernels_left_out(recipe);
  const auto stays = [&](const char* part) { return !left_out.contains(part); };
  if (!stays("attention"))
    throw RecipeError(FieldName{"without_kernel"}, "on a GPU attention is LibTorch's own; there is none to leave out");
  return {.products = stays("products"),
          .add_norm = stays("add-norm"),
          .gelu = stays("gelu"),
          .classifier = stays("softmax"),
          .adamw = stays("adamw")};
}

DeviceKernels::DeviceKernels(KernelLauncher& launcher, bool half, DeviceParts parts)
    : launcher_(launcher), half_(half), parts_(parts) {}

// Four columns a thread, in whole warps.
int DeviceKernels::threads_for(std::int64_t columns) const {
  return static_cast<int>(std::clamp<std::int64_t>((columns + 127) / 128 * 32, 32, 1024));
}

at::Tensor DeviceKernels::column_sums(const at::Tensor& partial) const {
  const at::Tensor sums = at::empty(partial.sizes().slice(1), partial.options());
  const std::int64_t columns = sums.numel();
  launcher_.start("column_sums", {.blocks = (columns + 31) / 32, .threads = 1024}, floats(partial),
                  count_of(partial.size(0)), count_of(columns), floats(sums));
  return sums;
}

DeviceKernels::Normed DeviceKernels::add_norm(const at::Tensor& stream, const at::Tensor& added,
                                              const at::Tensor& added_bias, const at::Tensor& weight,
                                              const at::Tensor& bias) const {
  const std::int64_t N = stream.size(0), C = stream.size(1);
  if (!parts_.add_norm) {
    const at::Tensor sum = added.defined() ? stream + with_bias(added, added_bias) : stream;
    const auto [normed, mean, factor] = at::native_layer_norm(sum, {C}, weight, bias, eps);
    return {sum, normed.to(element()), mean.reshape({N}), factor.reshape({N})};
  }
  TORCH_CHECK(C <= widest, "rows of ", C, " columns are too wide for the kernels");
  Normed result{.sum = added.defined() ? at::empty_like(stream) : stream,
                .normed = at::empty({N, C}, stream.options().dtype(element())),
                .mean = at::empty({N}, stream.options()),
                .factor = at::empty({N}, stream.options())};
  launcher_.start("add_norm", {.blocks = N, .threads = threads_for(C)}, floats(stream), elements(added, element()),
                  floats(added_bias), floats(weight), floats(bias), added.defined() ? floats(result.sum) : nullptr,
                  elements(result.normed, element()), floats(result.mean), floats(result.factor), count_of(C));
  return result;
}

DeviceKernels::NormGradients DeviceKernels::add_norm_backward(const at::Tensor& d_normed, const at::Tensor& later,
                                                              const Normed& forward, const at::Tensor& weight,
                                                              const at::Tensor& bias) const {
  const std::int64_t N = forward.sum.size(0), C = forward.sum.size(1);
  if (!parts_.add_norm) {
    auto [d_sum, d_weight, d_bias] =
        at::native_layer_norm_backward(d_normed.to(at::kFloat), forward.sum, {C}, forward.mean.view({N, 1}),
                                       forward.factor.view({N, 1}), weight, bias, {true, true, true});
    if (later.defined()) d_sum = d_sum + later;
    return {d_sum, d_sum.to(element()), d_weight, d_bias, d_sum.sum(0)};
  }
  const std::int64_t blocks = std::min<std::int64_t>(N, 4 * launcher_.processors());
  const at::Tensor partial = at::empty({blocks, 3, C}, forward.sum.options());
  NormGradients gradients{.sum = at::empty_like(forward.sum)};
  gradients.added = half_ ? at::empty({N, C}, d_normed.options()) : gradients.sum;
  launcher_.start("add_norm_backward", {.blocks = blocks, .threads = threads_for(C)}, elements(d_normed, element()),
                  floats(later), floats(forward.sum), floats(forward.mean), floats(forward.factor), floats(weight),
                  floats(gradients.sum), half_ ? elements(gradients.added, element()) : nullptr, floats(partial),
                  count_of(N), count_of(C));
  const at::Tensor sums = column_sums(partial);
  gradients.weight = sums[0];
  gradients.bias = sums[1];
  gradients.added_bias = sums[2];
  return gradients;
}

at::Tensor DeviceKernels::gelu(const at::Tensor& pre, const at::Tensor& bias) const {
  if (!parts_.gelu) return at::gelu(with_bias(pre, bias), "tanh").to(element());
  const at::Tensor after = at::empty_like(pre);
  launcher_.start("gelu", {.blocks = pre.size(0), .threads = std::min(256, threads_for(pre.size(1)))},
                  elements(pre, element()), floats(bias), elements(after, element()), count_of(pre.size(1)));
  return after;
}

at::Tensor DeviceKernels::gelu_backward(const at::Tensor& pre, const at::Tensor& bias, at::Tensor d) const {
  if (!parts_.gelu) return at::gelu_backward(d.to(at::kFloat), with_bias(pre, bias), "tanh").to(element());
  launcher_.start("gelu_backward", {.blocks = pre.size(0), .threads = std::min(256, threads_for(pre.size(1)))},
                  elements(pre, element()), floats(bias), elements(d, element()), count_of(pre.size(1)));
  return d;
}

at::Tensor DeviceKernels::bias_gradient(const at::Tensor& d) const {
  if (!parts_.gelu) return at::sum(d, {0}, /*keepdim=*/false, at::kFloat);
  const std::int64_t N = d.size(0), C = d.size(1), threads = std::min(256, threads_for(C));
  const std::int64_t blocks = (C + 4 * threads - 1) / (4 * threads);
  const std::int64_t slices = std::clamp<std::int64_t>(8 * launcher_.processors() / blocks, 1, N);
  const at::Tensor partial = at::empty({slices, C}, d.options().dtype(at::kFloat));
  launcher_.start("bias_gradient", {.blocks = blocks, .slices = slices, .threads = static_cast<int>(threads)},
                  elements(d, element()), count_of(N), count_of(C), floats(partial));
  return column_sums(partial);
}

at::Tensor DeviceKernels::classify(at::Tensor& logits, const at::Tensor& targets, std::int64_t vocab,
                                   double scale) const {
  const std::int64_t N = logits.size(0), V = logits.size(1);
  if (!parts_.classifier) {
    const at::Tensor likelihoods = at::log_softmax(logits.narrow(1, 0, vocab), 1, at::kFloat);
    const at::Tensor losses = -likelihoods.gather(1, targets.view({N, 1})).view({N});
    if (scale > 0) {
      at::Tensor gradient = likelihoods.exp();
      gradient.scatter_add_(1, targets.view({N, 1}), at::full({N, 1}, -1.0, gradient.options()));
      logits.zero_();
      logits.narrow(1, 0, vocab).copy_(gradient.mul_(scale));
    }
    return losses;
  }
  const at::Tensor losses = at::empty({N}, logits.options().dtype(at::kFloat));
  const std::int64_t row_bytes = V * static_cast<std::int64_t>(logits.element_size());
  const int in_shared = row_bytes <= launcher_.shared_bytes() ? 1 : 0;
  launcher_.start("classifier",
                  {.blocks = N, .threads = threads_for(V), .shared_bytes = in_shared ? (row_bytes + 15) / 16 * 16 : 0},
                  elements(logits, element()), tokens_of(targets), floats(losses), count_of(vocab), count_of(V),
                  static_cast<float>(scale), in_shared);
  return losses;
}

at::Tensor DeviceKernels::embed(const at::Tensor& table, const at::Tensor& positions, const at::Tensor& tokens,
                                std::int64_t length) const {
  const std::int64_t N = tokens.numel(), C = table.size(1);
  if (!parts_.embedding) {
    const at::Tensor rows = at::embedding(table, tokens.view({N})).view({N / length, length, C});
    return (rows + positions.narrow(0, 0, length)).view({N, C});
  }
  const at::Tensor out = at::empty({N, C}, table.options().requires_grad(false));
  launcher_.start("embedding", {.blocks = N, .threads = threads_for(C)}, floats(table), floats(positions),
                  tokens_of(tokens), floats(out), count_of(length), count_of(C));
  return out;
}

at::Tensor DeviceKernels::embed_backward(const at::Tensor& d, const at::Tensor& tokens, std::int64_t rows) const {
  if (!parts_.embedding) return at::embedding_dense_backward(d, tokens.view({-1}), rows, -1, false);
  const at::Tensor table = at::zeros({rows, d.size(1)}, d.options());
  const auto [sorted, order] = at::sort(tokens.view({-1}), /*stable=*/std::optional<bool>(true));
  const int group = threads_for(d.size(1)), groups = 1024 / group;
  launcher_.start("embedding_backward",
                  {.blocks = d.size(0),
                   .threads = groups * group,
                   .shared_bytes = groups * (d.size(1) + 3) / 4 * 4 * static_cast<std::int64_t>(sizeof(float))},
                  tokens_of(sorted), tokens_of(order), floats(d), floats(table), count_of(d.size(0)),
                  count_of(d.size(1)), group);
  return table;
}

}  // namespace stepladder
