// Head and loss as one: logits in chunks of rows, each turned into its gradient in place, so that (B T, V) is never
// stored. Does on a CPU what Liger's and Apple's fused cross-entropy do on a GPU.
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace stepladder {

// hidden: (N, C), weight: (V', C) with V' >= vocab, targets: (N) below `vocab`. Returns (), the mean loss in nats,
// which is that of cross_entropy(hidden weight^T) over the first `vocab` columns. With gradients on, both gradients are
// ready when it returns, since the loss is the last operation of a step; backward only scales them. Follows autocast:
// products in bf16, softmax in float32.
at::Tensor fused_classifier(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                            std::int64_t vocab);

}  // namespace stepladder
