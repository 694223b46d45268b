// A run's micro-batches on its device. Each is this process's rows of the whole micro-batch.
#pragma once

#include <cstdint>

#include "engine/files/tokens.h"
#include "engine/recipe.h"
#include "engine/trainer/host_copies.h"
#include "engine/trainer/parallel/data_parallel.h"

namespace stepladder {

// Not thread-safe: the training thread only.
class MicroBatches {
 public:
  // All of them must outlive this.
  MicroBatches(const Recipe& recipe, const TokenSource& source, const DataParallel& parallel, at::Device device)
      : recipe_(recipe), source_(source), parallel_(parallel), feed_(device, recipe.seq) {}

  // Steps count from 1, micro-batches from 0.
  Tokens training(std::int64_t step, int micro) { return feed_.to_device(training_batch(step, micro)); }
  // Into tensors that stay where they are.
  void copy_training(std::int64_t step, int micro, const Tokens& place) {
    feed_.copy_into(place, training_batch(step, micro));
  }
  Tokens validation(std::int64_t index) {
    return feed_.to_device(parallel_.share(source_.batch(Split::validation, index, recipe_.batch)));
  }

 private:
  Batch training_batch(std::int64_t step, int micro) const {
    const std::int64_t index = (recipe_.overfit ? 0 : (step - 1) * recipe_.grad_accum) + micro;
    return parallel_.share(source_.batch(Split::train, index, recipe_.batch));
  }

  const Recipe& recipe_;
  const TokenSource& source_;
  const DataParallel& parallel_;
  TokenFeed feed_;
};

}  // namespace stepladder
