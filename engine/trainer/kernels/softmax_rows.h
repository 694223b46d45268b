// The fused classifier's inner loop.
#pragma once

#include <cstdint>

namespace stepladder {

// One chunk, in place. logits: `rows` rows of `stride` floats, of which the first `vocab` count. Writes -log softmax at
// the target to each of `losses` and, if `scale` is not 0, leaves scale x (softmax - onehot), with zeros in the
// padding. Uses no torch; vectorised for the CPU that it runs on.
void softmax_rows(float* logits, std::int64_t rows, std::int64_t stride, std::int64_t vocab,
                  const std::int64_t* targets, float scale, double* losses);

}  // namespace stepladder
