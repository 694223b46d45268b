// The loops of causal attention between its products: scale, mask and softmax in one pass, in place.
#pragma once

#include <cstdint>

#include "engine/trainer/kernels/row_loops.h"

namespace stepladder {

// scores: (rows, T), the row of query t = row % T for each of many heads. Leaves softmax(scale x scores) over the keys
// up to t and zeros after it, without reading those scores: half of the exponentials are saved.
void causal_softmax_rows(float* scores, std::int64_t rows, std::int64_t T, float scale);
void causal_softmax_rows(Bf16* scores, std::int64_t rows, std::int64_t T, float scale);

// The gradient of the probabilities becomes that of the scores: scale x p (d - sum(p d)), zeros after the query.
void causal_softmax_backward_rows(const float* probabilities, std::int64_t rows, std::int64_t T, float scale,
                                  float* gradient);
void causal_softmax_backward_rows(const Bf16* probabilities, std::int64_t rows, std::int64_t T, float scale,
                                  Bf16* gradient);

}  // namespace stepladder
