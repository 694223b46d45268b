// Splits the parameters into tables of at most adamw_slots tensors and launches adamw.cu once for each table. Learning
// rate and corrections are written to device memory in begin_step, never passed as arguments, so that a captured step
// reads new ones.
#include "engine/trainer/device/kernel_adamw.h"

#include <cmath>

#include "engine/kernels/adamw_slots.h"

namespace stepladder {
namespace {

float* floats_of(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kFloat, "AdamW's kernel needs contiguous float32");
  return tensor.mutable_data_ptr<float>();
}

class KernelAdamW : public AdamW {
 public:
  KernelAdamW(const Recipe& recipe, NamedTensors parameters, const DeviceKernels& kernels, Copies copies)
      : AdamW(recipe, std::move(parameters)), kernels_(kernels), copies_(std::move(copies)), slots_(slots()) {
    place_numbers();
    std::int64_t chunks = 0;
    for (const Slot& slot : slots_) chunks += chunks_of(slot);
    partial_ = at::empty({chunks}, device_options());
    norm_ = at::zeros({}, device_options());
    factor_ = at::zeros({}, device_options());
  }

  void begin_step(double lr) override {
    const at::NoGradGuard no_grad;
    ++steps_;
    numbers_[0].fill_(lr);
    numbers_[1].fill_(1.0 - std::pow(beta1_, static_cast<double>(steps_)));
    numbers_[2].fill_(std::sqrt(1.0 - std::pow(beta2_, static_cast<double>(steps_))));
    clipped_ = false;
  }

  // The gradients stay as they are; `update` applies the factor.
  at::Tensor clip_gradients(double highest) override {
    int done = 0;
    for_all_slots([&](const AdamWSlots& slots, int chunks) {
      start("gradient_squares", chunks, slots, floats_of(partial_), done);
      done += chunks;
    });
    kernels_.launcher().start("clip_factor", {.blocks = 1, .threads = 1024}, floats_of(partial_), done,
                              static_cast<float>(highest), floats_of(norm_), floats_of(factor_));
    clipped_ = true;
    return norm_;
  }

  void update() override {
    for_all_slots([&](const AdamWSlots& slots, int chunks) {
      start("adamw", chunks, slots, floats_of(numbers_), clipped_ ? floats_of(factor_) : nullptr,
            static_cast<float>(beta1_), static_cast<float>(beta2_), static_cast<float>(eps_));
    });
  }

 private:
  static std::int64_t chunks_of(const Slot& slot) { return (slot.parameter.numel() + adamw_chunk - 1) / adamw_chunk; }

  template <class... Values>
  void start(const char* kernel, int chunks, const Values&... values) const {
    kernels_.launcher().start(kernel, {.blocks = chunks, .threads = 512}, values...);
  }

  // Calls use(slots, chunks) for as many parameters at a time as an argument list has room for.
  template <class Use>
  void for_all_slots(const Use& use) const {
    for (std::size_t first = 0; first < slots_.size(); first += adamw_slots) {
      AdamWSlots table{};
      int chunks = 0;
      for (std::size_t i = first; i < std::min(slots_.size(), first + adamw_slots); ++i) {
        const Slot& slot = slots_[i];
        const int at = table.count++;
        const auto copy = copies_.find(slot.parameter.unsafeGetTensorImpl());
        table.weight[at] = floats_of(slot.parameter);
        table.half[at] =
            copy == copies_.end() ? nullptr : static_cast<unsigned short*>(copy->second.mutable_data_ptr());
        table.gradient[at] = floats_of(slot.parameter.grad());
        table.average[at] = floats_of(slot.average);
        table.squared_average[at] = floats_of(slot.squared_average);
        table.elements[at] = slot.parameter.numel();
        table.first_chunk[at] = chunks;
        table.weight_decay[at] = static_cast<float>(slot.weight_decay);
        chunks += static_cast<int>(chunks_of(slot));
      }
      use(table, chunks);
    }
  }

  void place_numbers() override {
    if (!numbers_.defined()) numbers_ = at::zeros({3}, device_options());  // a graph reads them there anyway
  }

  const DeviceKernels& kernels_;
  const Copies copies_;
  const std::vector<Slot> slots_;
  at::Tensor numbers_;  // learning rate and both bias corrections
  at::Tensor partial_, norm_, factor_;
  bool clipped_ = false;
};

}  // namespace

std::unique_ptr<AdamW> make_kernel_adamw(const Recipe& recipe, NamedTensors parameters, const DeviceKernels& kernels,
                                         Copies copies) {
  return std::make_unique<KernelAdamW>(recipe, std::move(parameters), kernels, std::move(copies));
}

}  // namespace stepladder
