// Validation beside a captured step, which keeps the memory of all that it computes.
#include "engine/trainer/step/step.h"

#include <c10/util/Exception.h>

namespace stepladder {

double Step::loss_within_memory(const Tokens& tokens) {
  const std::int64_t rows = tokens.inputs.size(0), half = (rows + 1) / 2;
  if (rows <= most_rows_) {
    try {
      return loss(tokens);
    } catch (const c10::OutOfMemoryError&) {
      if (rows == 1) throw;
      most_rows_ = half;
    }
  }
  const auto sum_of = [&](std::int64_t first, std::int64_t count) {
    return static_cast<double>(count) *
           loss_within_memory({tokens.inputs.narrow(0, first, count), tokens.targets.narrow(0, first, count)});
  };
  return (sum_of(0, half) + sum_of(half, rows - half)) / static_cast<double>(rows);
}

}  // namespace stepladder
