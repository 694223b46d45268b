// GPT-2's training step as a plan: which loops and products run, in which order, on which memory, is known before the
// first step. So there is no tape of operations, no call through a dispatcher, and no allocation in a step: one arena
// holds every buffer, and one list of phases (crew.h) holds all work. Uses no torch.
//
// Rows of tokens pass through a whole chain at once (product, bias, GELU, product, add, norm, product), so what one
// kernel writes the next one finds in the cache. Only attention looks at other rows of its sequence, so a layer has two
// phases in each direction. Weight gradients accumulate in place, over all rows in their order; so do the sums over
// rows within a block. The results therefore have the same bits on any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/trainer/plan/plan_kernels.h"

namespace stepladder {

struct PlanShape {
  std::int64_t layers = 0, heads = 0, width = 0;  // width: C
  std::int64_t vocab = 0, padded_vocab = 0;       // V, V'
  std::int64_t sequences = 0, length = 0;         // of a micro-batch: B, T
  bool tied_head = false;
  int workers = 1;  // threads, the calling one included
};

// One parameter and what the optimiser keeps of it: float32, contiguous. The memory belongs to the caller, stays where
// it is, and outlives the plan. The plan reads weights and writes all four.
struct PlanParameter {
  float* weight = nullptr;
  float* gradient = nullptr;
  float* average = nullptr;
  float* squared_average = nullptr;
  std::int64_t elements = 0;
  double weight_decay = 0;
};

struct PlanLayer {
  PlanParameter weight, bias;
};

// Shapes as in model.h.
struct PlanBlock {
  PlanLayer ln_1, attention, attention_out, ln_2, fc, fc_out;
};

struct PlanParameters {
  PlanParameter tokens, positions, head;  // a tied head is `tokens` again
  std::vector<PlanBlock> blocks;
  PlanLayer ln_f;
};

// The least that one call of a kernel must do: floating-point operations (0: not counted, as the memory limits it), and
// bytes to read and to write if each operand moves once.
struct KernelWork {
  double flops = 0, bytes = 0;
};

// Sees the kernels that the workers run, each on its worker's own thread; worker 0 is the calling thread.
class KernelWatch {
 public:
  virtual ~KernelWatch() = default;
  virtual void begin(int worker, const char* kernel, const KernelWork& work) = 0;
  virtual void end(int worker) = 0;
};

class GptPlan {
 public:
  // Allocates everything, and starts the threads. With kernels of bf16, products have bf16 inputs and outputs; sums,
  // norms, softmax, the residual stream and the weights to be updated stay float32.
  static std::unique_ptr<GptPlan> make(const PlanShape& shape, const PlanParameters& parameters,
                                       const PlanKernels<float>& kernels);
  static std::unique_ptr<GptPlan> make(const PlanShape& shape, const PlanParameters& parameters,
                                       const PlanKernels<Bf16>& kernels);
  virtual ~GptPlan() = default;

  // Whoever writes weights other than by `update` calls this; the next forward pass packs them again.
  virtual void weights_changed() = 0;

  // The mean loss of a micro-batch in nats; `inputs` and `targets` are (B, T) and must be below `vocab`. `share` is the
  // factor of this micro-batch's loss in the step's; 0: only the loss is wanted. Otherwise the head's gradient is ready
  // too: added to what is there if `add`, else written.
  virtual double forward(const std::int64_t* inputs, const std::int64_t* targets, double share, bool add) = 0;

  // The gradients of that forward pass's parameters, once: added or written. `done`, if there is one, is called on this
  // thread when all gradients of a layer's parameters have been computed, from the last layer to the first; the other
  // parameters' are ready when this returns.
  using LayerDone = std::function<void(std::int64_t layer)>;
  virtual void backward(bool add, const LayerDone& done) = 0;

  // L2 norm over all gradients.
  virtual double gradient_norm() = 0;

  // AdamW (Loshchilov and Hutter 2019) with all gradients multiplied by `gradient_factor`. `step` counts from 1.
  struct Update {
    double lr = 0, beta1 = 0, beta2 = 0, eps = 0, gradient_factor = 1;
    std::int64_t step = 0;
  };
  virtual void update(const Update& update) = 0;

  // Null: none. It must live until it is replaced.
  virtual void watch(KernelWatch* watch) = 0;

  virtual int workers() const = 0;

  // Bytes of the plan's own memory.
  virtual std::int64_t bytes() const = 0;
};

}  // namespace stepladder
