#include "engine/trainer/kernels/classifier.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "engine/trainer/kernels/softmax_rows.h"
#include "engine/trainer/profile/kernel_range.h"
#include "engine/trainer/settings.h"

namespace stepladder {
namespace {

// Logits of one chunk, float32. Large enough for fast products, small enough to be a minor part of memory.
constexpr std::int64_t chunk_bytes = 64 << 20;

// Mean loss over all rows. Writes the gradients that are given, d_hidden (N, C) and d_weight (V', C). Everything is in
// the type of `hidden`.
double classify(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets, std::int64_t vocab,
                at::Tensor* d_hidden, at::Tensor* d_weight) {
  const std::int64_t N = hidden.size(0), V = weight.size(0);
  const std::int64_t rows = std::clamp<std::int64_t>(chunk_bytes / (V * 4), 1, N);
  const bool half = hidden.scalar_type() != at::kFloat;
  const float scale = d_hidden ? 1.0F / static_cast<float>(N) : 0.0F;
  // Reused from call to call: fresh memory costs a page fault for every four kilobytes.
  static thread_local at::Tensor kept;
  if (!kept.defined() || kept.numel() < rows * V) kept = at::empty({rows * V}, at::kFloat);
  const at::Tensor buffer = kept.narrow(0, 0, rows * V).view({rows, V});

  std::vector<double> losses(static_cast<std::size_t>(N));  // added up in order, so that the sum is always the same
  for (std::int64_t begin = 0; begin < N; begin += rows) {
    const std::int64_t count = std::min(rows, N - begin);
    const at::Tensor h = hidden.narrow(0, begin, count);  // (n, C)
    at::Tensor logits = buffer.narrow(0, 0, count);       // (n, V'), float32
    if (half) {
      logits.copy_(at::mm(h, weight.t()));
    } else {
      at::mm_out(logits, h, weight.t());
    }
    const std::int64_t* const wanted = targets.const_data_ptr<std::int64_t>() + begin;
    {
      const KernelRange of("stepladder::classifier", 0, static_cast<double>(2 * logits.nbytes()));
      at::parallel_for(0, count, 1, [&](std::int64_t first, std::int64_t last) {
        softmax_rows(logits.mutable_data_ptr<float>() + first * V, last - first, V, vocab, wanted + first, scale,
                     losses.data() + begin + first);
      });
    }
    if (!d_hidden) continue;
    const at::Tensor gradient = half ? logits.to(hidden.scalar_type()) : logits;
    at::Tensor d_h = d_hidden->narrow(0, begin, count);
    at::mm_out(d_h, gradient, weight);
    if (begin == 0) {
      at::mm_out(*d_weight, gradient.t(), h);
    } else {
      d_weight->addmm_(gradient.t(), h);
    }
  }
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(N);
}

struct FusedClassifier : torch::autograd::Function<FusedClassifier> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& hidden,
                            const at::Tensor& weight, const at::Tensor& targets, std::int64_t vocab,
                            at::ScalarType type) {
    const at::NoGradGuard no_grad;
    at::Tensor d_hidden = at::empty(hidden.sizes(), hidden.options().dtype(type));
    at::Tensor d_weight = at::empty(weight.sizes(), weight.options().dtype(type));
    const double loss = classify(hidden.to(type), weight.to(type), targets, vocab, &d_hidden, &d_weight);
    context->save_for_backward({d_hidden.to(hidden.scalar_type()), d_weight.to(weight.scalar_type())});
    return at::scalar_tensor(loss, hidden.options().dtype(at::kFloat));
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    auto saved = context->get_saved_variables();
    const double factor = gradients.front().item<double>();  // 1, or one over the micro-batches
    if (factor != 1) {
      for (at::Tensor& gradient : saved) gradient.mul_(factor);
    }
    return {saved[0], saved[1], {}, {}, {}};
  }
};

}  // namespace

at::Tensor fused_classifier(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                            std::int64_t vocab) {
  const at::ScalarType type = product_type(hidden);
  // Turns autocast off for the rest: the types are chosen here.
  const c10::impl::ExcludeDispatchKeyGuard by_hand(c10::autocast_dispatch_keyset);
  const at::Tensor rows = hidden.contiguous();
  if (!at::GradMode::is_enabled()) {
    return at::scalar_tensor(classify(rows.to(type), weight.to(type), targets, vocab, nullptr, nullptr), at::kFloat);
  }
  return FusedClassifier::apply(rows, weight, targets, vocab, type);
}

}  // namespace stepladder
