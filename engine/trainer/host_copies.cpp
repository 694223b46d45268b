#include "engine/trainer/host_copies.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace stepladder {
namespace {

// (rows, seq), the vector's own memory.
at::Tensor view_of(const std::vector<std::int64_t>& values, std::int64_t seq) {
  return at::from_blob(const_cast<std::int64_t*>(values.data()), {std::ssize(values) / seq, seq}, at::kLong);
}

at::TensorOptions pinned(at::ScalarType type) {
  return at::TensorOptions(type).pinned_memory(true);
}

}  // namespace

TokenFeed::TokenFeed(at::Device device, std::int64_t seq) : device_(device), seq_(seq) {}

// The batch's tokens in memory that lives until the next call but one; on a CPU in the batch's own.
Tokens TokenFeed::staged(const Batch& batch) {
  const Tokens given{view_of(batch.inputs, seq_), view_of(batch.targets, seq_)};
  if (!device_.is_cuda()) return given;
  Slot& slot = slots_[next_];
  if (slot.copied) slot.copied->synchronize();
  if (!slot.pinned.inputs.defined() || slot.pinned.inputs.sizes() != given.inputs.sizes()) {
    slot.pinned = {at::empty(given.inputs.sizes(), pinned(at::kLong)),
                   at::empty(given.targets.sizes(), pinned(at::kLong))};
  }
  slot.pinned.inputs.copy_(given.inputs);
  slot.pinned.targets.copy_(given.targets);
  return slot.pinned;
}

void TokenFeed::hand_over() {
  if (!device_.is_cuda()) return;
  Slot& slot = slots_[next_];
  if (!slot.copied) slot.copied.emplace(device_.type());
  slot.copied->record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  next_ = 1 - next_;
}

Tokens TokenFeed::to_device(const Batch& batch) {
  const Tokens from = staged(batch);
  const auto moved = [&](const at::Tensor& tokens) {
    return tokens.to(device_, /*non_blocking=*/device_.is_cuda(), /*copy=*/true);
  };
  Tokens there{moved(from.inputs), moved(from.targets)};
  hand_over();
  return there;
}

void TokenFeed::copy_into(const Tokens& place, const Batch& batch) {
  const Tokens from = staged(batch);
  place.inputs.copy_(from.inputs, /*non_blocking=*/device_.is_cuda());
  place.targets.copy_(from.targets, /*non_blocking=*/device_.is_cuda());
  hand_over();
}

void FiguresOnHost::start(const StepTensors& figures) {
  loss_ = copied(figures.loss, pinned_loss_);
  norm_ = figures.norm.defined() ? copied(figures.norm, pinned_norm_) : at::Tensor();
}

at::Tensor FiguresOnHost::copied(const at::Tensor& figure, at::Tensor& pinned_place) const {
  if (!device_.is_cuda()) return figure;
  if (!pinned_place.defined()) pinned_place = at::empty({}, pinned(figure.scalar_type()));
  pinned_place.copy_(figure, /*non_blocking=*/true);
  return pinned_place;
}

}  // namespace stepladder
