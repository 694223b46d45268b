// The plan's insides (gpt_plan.h): what it keeps, and the functions of its tasks. Where they are: gpt_plan.cpp lays out
// memory and phases, gpt_plan_forward.cpp, gpt_plan_backward.cpp and gpt_plan_update.cpp hold what the phases do.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/trainer/plan/arena.h"
#include "engine/trainer/plan/crew.h"
#include "engine/trainer/plan/gpt_plan.h"
#include "engine/trainer/plan/weight_products.h"

namespace stepladder {

inline constexpr float norm_eps = 1e-5F;
inline constexpr std::int64_t update_elements = 1 << 15;  // a task of the optimiser
inline constexpr std::int64_t logit_columns = 1024;       // a task of the classifier's product
inline constexpr std::int64_t logit_bytes = 64 << 20;     // at most so much of (B T, V') is in memory
inline constexpr std::int64_t embedding_columns = 32;     // a task of the embedding's gradient
inline constexpr std::int64_t softmax_task_rows = 8;

// The tasks of a phase that is made of several kinds of work.
class PhaseMaker {
 public:
  void add(std::int64_t tasks, std::function<void(std::int64_t, int)> work) {
    if (tasks > 0) parts_.push_back({tasks, std::move(work)});
  }

  Phase phase() && {
    std::int64_t tasks = 0;
    for (const Phase& part : parts_) tasks += part.tasks;
    return {tasks, [parts = std::move(parts_)](std::int64_t task, int worker) {
              std::size_t part = 0;
              while (task >= parts[part].tasks) task -= parts[part++].tasks;
              parts[part].work(task, worker);
            }};
  }

 private:
  std::vector<Phase> parts_;
};

// A LayerNorm's input (the residual stream), output, and what its backward pass
// needs.
template <class T>
struct NormBuffers {
  float *sum, *mean, *factor;
  T* out;
};

template <class T>
struct BlockBuffers {
  NormBuffers<T> ln_1, ln_2;
  T *qkv, *mixed, *slope, *after;
  float* log_sums;
  PackedWeight<T> attention, attention_out, fc, fc_out;
};

// T is the type of the products' inputs and outputs: float or Bf16.
template <class T>
class Plan : public GptPlan {
 public:
  Plan(const PlanShape& shape, const PlanParameters& parameters, const PlanKernels<T>& kernels);

  void weights_changed() override { packed_ = false; }
  double forward(const std::int64_t* inputs, const std::int64_t* targets, double share, bool add) override;
  void backward(bool add, const LayerDone& done) override;
  double gradient_norm() override;
  void update(const Update& update) override;
  void watch(KernelWatch* watch) override { watch_ = watch; }
  int workers() const override { return crew_.workers(); }
  std::int64_t bytes() const override { return arena_.bytes(); }

 private:
  // A kernel that a worker runs, from its construction to its destruction.
  class Kernel {
   public:
    Kernel(const Plan& plan, int worker, const char* name, const KernelWork& work)
        : watch_(plan.watch_), worker_(worker) {
      if (watch_) watch_->begin(worker_, name, work);
    }
    ~Kernel() {
      if (watch_) watch_->end(worker_);
    }
    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;

   private:
    KernelWatch* const watch_;
    const int worker_;
  };

  // The work of a product of m x k and k x n values of type T, or a left factor of another size.
  static KernelWork product_work(std::int64_t m, std::int64_t k, std::int64_t n, std::size_t result_bytes,
                                 std::size_t left_bytes = sizeof(T)) {
    return {2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n),
            static_cast<double>(m * k) * static_cast<double>(left_bytes) +
                static_cast<double>(k * n) * static_cast<double>(sizeof(T)) +
                static_cast<double>(m * n) * static_cast<double>(result_bytes)};
  }
  // The work of causal attention: `flops_per_pair` for each pair of tokens and value of a head, for half of the pairs,
  // and so many tensors of the head's size.
  static KernelWork attention_work(const HeadShape& head, double flops_per_pair, double tensors) {
    const auto values = static_cast<double>(head.length * head.width);
    return {flops_per_pair / 2 * static_cast<double>(head.length) * values,
            values * tensors * static_cast<double>(sizeof(T))};
  }
  // The work of a memory-bound kernel: elements times the bytes that it moves for each.
  static KernelWork moved(std::int64_t elements, std::size_t bytes_each) {
    return {0, static_cast<double>(elements) * static_cast<double>(bytes_each)};
  }

  // Sums over the rows of one block of tokens, one after the other for each
  // bias and norm; they are added up at the end.
  struct RowSums {
    std::int64_t layer;  // of the parameter; of the last norm: how many layers there are
    PlanParameter parameter;
    std::int64_t offset, width;
  };

  void place();
  std::int64_t scratch_elements() const;
  void make_phases();
  void make_classifier_phases(std::int64_t first, std::int64_t count);
  void make_backward_phases();
  void make_update_phases();
  void add_packing(PhaseMaker& maker, const PackedWeight<T>& packed);
  void add_weight_gradient(PhaseMaker& maker, const PlanParameter& parameter, const PackedWeight<T>& packed,
                           const T* d_out, const T* in);

  // Each takes the rows [first, first + count).
  void begin_rows(std::int64_t first, std::int64_t count, int worker);
  void block_rows(std::int64_t layer, std::int64_t first, std::int64_t count, int worker);
  void attention_rows(std::int64_t layer, std::int64_t first, std::int64_t count, int worker);
  void norm_backward_rows(std::int64_t layer, std::int64_t block, int worker);
  void block_backward_rows(std::int64_t layer, std::int64_t block, int worker);
  // A task of attention: one head of one sequence, and where it begins.
  struct Head {
    HeadShape shape;
    std::int64_t in_qkv, in_mixed, in_log_sums;  // elements
  };
  Head head_of(std::int64_t task) const {
    const std::int64_t length = shape_.length, d = C_ / shape_.heads, column = task % shape_.heads * d;
    const std::int64_t token = task / shape_.heads * length;
    return {{length, d, 3 * C_, C_}, token * 3 * C_ + column, token * C_ + column, task * length};
  }
  void attention_task(std::int64_t layer, std::int64_t task, int worker);
  void attention_backward_task(std::int64_t layer, std::int64_t task, int worker);
  void weight_gradient(const PlanParameter& parameter, const PackedWeight<T>& shape, const T* d_out, const T* in,
                       std::int64_t task, int worker);
  void head_gradient(std::int64_t first, std::int64_t count, std::int64_t task, int worker);
  void hidden_gradient(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns, int worker);
  void token_gradient(std::int64_t task);
  void position_gradient(std::int64_t task);
  void collect_sums(const RowSums& sums);
  void add_row_sums(PhaseMaker& maker, std::int64_t layer);

  // y = x W^T (+ bias) of `count` rows, and d_x = d_y W.
  void rows_across(int worker, const char* kernel, const T* x, const PackedWeight<T>& weight, std::int64_t count,
                   const float* bias, T* y) {
    const Kernel of(*this, worker, kernel, product_work(count, weight.in, weight.out, sizeof(T)));
    products_.rows_across(x, weight, count, bias, y, product_scratch(worker));
  }
  void rows_along(int worker, const char* kernel, const T* d_y, const PackedWeight<T>& weight, std::int64_t count,
                  T* d_x) {
    const Kernel of(*this, worker, kernel, product_work(count, weight.out, weight.in, sizeof(T)));
    products_.rows_along(d_y, weight, count, d_x, product_scratch(worker));
  }

  KernelWork norm_backward_work(std::int64_t rows) const { return moved(rows * C_, 3 * sizeof(float) + 2 * sizeof(T)); }

  float* scratch(int worker) { return scratch_ + worker * scratch_each_; }
  // Between its results and its panels a chain of kernels keeps one more row of the block's width.
  ProductScratch product_scratch(int worker) {
    float* const left = scratch(worker);
    return {.left = left, .out = left + rows_.each * 4 * C_, .panels = left + rows_.each * 9 * C_};
  }
  float* sums_at(std::int64_t block, std::int64_t layer, std::int64_t which) {
    return row_sums_ + block * row_sums_each_ + sum_offsets_[static_cast<std::size_t>(layer * sum_kinds + which)];
  }
  // The gradient of the residual stream is in d_stream_: above a block's MLP [0], above its attention [1].
  const T* d_added(int which) const {
    if constexpr (std::is_same_v<T, float>) {
      return d_stream_[which];
    } else {
      return d_added_[which];
    }
  }

  enum SumKind {
    ln_1_weight,
    ln_1_bias,
    attention_bias,
    attention_out_bias,
    ln_2_weight,
    ln_2_bias,
    fc_bias,
    fc_out_bias,
    sum_kinds
  };

  const PlanShape shape_;
  PlanParameters parameters_;
  const std::int64_t C_, N_;  // width; tokens
  const Pieces rows_;         // the tokens in blocks
  const PlanKernels<T> kernels_;
  const WeightProducts<T> products_;
  Crew crew_;
  KernelWatch* watch_ = nullptr;
  bool packed_ = false;

  // The arguments of the pass that is under way.
  const std::int64_t *inputs_ = nullptr, *targets_ = nullptr;
  float logit_scale_ = 0;
  bool add_ = false;
  std::vector<AdamWNumbers> numbers_;  // of each parameter

  Arena arena_;
  std::vector<BlockBuffers<T>> blocks_;
  NormBuffers<T> ln_f_{};
  PackedWeight<T> head_;
  T *d_hidden_ = nullptr, *d_qkv_ = nullptr, *d_fc_ = nullptr, *d_mixed_ = nullptr;
  float* d_stream_[2] = {};
  T* d_added_[2] = {};
  float* logits_ = nullptr;
  std::int64_t logit_rows_ = 0;
  double* losses_ = nullptr;
  T* nothing_ = nullptr;  // zeros: a block of rows
  float* row_sums_ = nullptr;
  std::int64_t row_sums_each_ = 0;
  float* scratch_ = nullptr;
  std::int64_t scratch_each_ = 0;
  std::vector<RowSums> sums_;
  std::vector<std::int64_t> sum_offsets_;
  struct Span {
    std::size_t parameter;
    std::int64_t begin, size;
  };
  std::vector<PlanParameter> all_;  // each parameter once
  std::vector<Span> spans_;         // the optimiser's tasks
  std::vector<double> squares_;     // of each span

  std::vector<Phase> packing_, forward_, loss_, loss_and_gradient_, backward_, norm_, update_;
  std::vector<std::size_t> layer_ends_;  // of each layer: the number of backward_'s phases after which it is done
};

}  // namespace stepladder
