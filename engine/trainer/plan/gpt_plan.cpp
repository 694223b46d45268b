#include "engine/trainer/plan/gpt_plan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>
#include <type_traits>

#include "engine/trainer/plan/arena.h"
#include "engine/trainer/plan/crew.h"
#include "engine/trainer/plan/weight_products.h"

namespace stepladder {
namespace {

constexpr float norm_eps = 1e-5F;
constexpr std::int64_t update_elements = 1 << 15;  // a task of the optimiser
constexpr std::int64_t logit_columns = 1024;       // a task of the classifier's product
constexpr std::int64_t logit_bytes = 64 << 20;     // at most so much of (B T, V') is in memory
constexpr std::int64_t embedding_columns = 32;     // a task of the embedding's gradient
constexpr std::int64_t softmax_task_rows = 8;

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
  std::int64_t bytes() const override { return arena_.bytes(); }

 private:
  // A kernel that worker 0 runs, from its construction to its destruction.
  class Kernel {
   public:
    Kernel(const Plan& plan, int worker, const char* name) : watch_(worker == 0 ? plan.watch_ : nullptr) {
      if (watch_) watch_->begin(name);
    }
    ~Kernel() {
      if (watch_) watch_->end();
    }
    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;

   private:
    KernelWatch* const watch_;
  };

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
  void add_packing(PhaseMaker& maker, const PackedWeight<T>& packed);
  void add_weight_gradient(PhaseMaker& maker, const PlanParameter& parameter, const PackedWeight<T>& packed,
                           const T* d_out, const T* in);

  // Each takes the rows [first, first + count).
  void begin_rows(std::int64_t first, std::int64_t count, int worker);
  void block_rows(std::int64_t layer, std::int64_t first, std::int64_t count, int worker);
  void attention_rows(std::int64_t layer, std::int64_t first, std::int64_t count, int worker);
  void norm_backward_rows(std::int64_t layer, std::int64_t block, int worker);
  void block_backward_rows(std::int64_t layer, std::int64_t block, int worker);
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
    const Kernel of(*this, worker, kernel);
    products_.rows_across(x, weight, count, bias, y, product_scratch(worker));
  }
  void rows_along(int worker, const char* kernel, const T* d_y, const PackedWeight<T>& weight, std::int64_t count,
                  T* d_x) {
    const Kernel of(*this, worker, kernel);
    products_.rows_along(d_y, weight, count, d_x, product_scratch(worker));
  }

  float* scratch(int worker) { return scratch_ + worker * scratch_each_; }
  // Between its results and its panels a chain of kernels keeps one more row of the block's width.
  ProductScratch product_scratch(int worker) {
    float* const left = scratch(worker);
    return {.left = left, .out = left + rows_.each * 4 * C_, .panels = left + rows_.each * 9 * C_};
  }
  float* sums_at(std::int64_t block, std::int64_t layer, std::int64_t which) {
    return row_sums_ + block * row_sums_each_ + sum_offsets_[static_cast<std::size_t>(layer * sum_kinds + which)];
  }
  // In d_stream_ the gradient of the residual stream: above a block's MLP [0],
  // above its attention [1].
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

  // Of the pass that is under way.
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

template <class T>
Plan<T>::Plan(const PlanShape& shape, const PlanParameters& parameters, const PlanKernels<T>& kernels)
    : shape_(shape),
      parameters_(parameters),
      C_(shape.width),
      N_(shape.sequences * shape.length),
      rows_{N_, C_ <= small_width ? 64 : 128},
      kernels_(kernels),
      products_(kernels_.products.gradient),
      crew_(shape.workers) {
  const auto once = [this](const PlanParameter& parameter) { all_.push_back(parameter); };
  const auto both = [&](const PlanLayer& layer) { once(layer.weight), once(layer.bias); };
  once(parameters.tokens);
  once(parameters.positions);
  if (!shape.tied_head) once(parameters.head);
  for (const PlanBlock& block : parameters.blocks) {
    for (const PlanLayer* layer :
         {&block.ln_1, &block.attention, &block.attention_out, &block.ln_2, &block.fc, &block.fc_out}) {
      both(*layer);
    }
  }
  both(parameters.ln_f);
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const Pieces pieces{all_[i].elements, update_elements};
    for (std::int64_t piece = 0; piece < pieces.count(); ++piece)
      spans_.push_back({i, pieces.begin(piece), pieces.size(piece)});
  }
  squares_.resize(spans_.size());
  numbers_.resize(all_.size());
  place();
  make_phases();
}

template <class T>
void Plan<T>::place() {
  const auto want_norm = [&](NormBuffers<T>& norm) {
    arena_.want(norm.sum, N_ * C_);
    arena_.want(norm.mean, N_);
    arena_.want(norm.factor, N_);
    arena_.want(norm.out, N_ * C_);
  };
  std::int64_t offset = 0, layer_of_sums = 0;
  const auto sum_of = [&](const PlanParameter& parameter, std::int64_t width) {
    if (parameter.gradient) sums_.push_back({layer_of_sums, parameter, offset, width});
    sum_offsets_.push_back(offset);
    offset += width;
  };
  blocks_.resize(static_cast<std::size_t>(shape_.layers));
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    BlockBuffers<T>& block = blocks_[layer];
    want_norm(block.ln_1);
    want_norm(block.ln_2);
    arena_.want(block.qkv, N_ * 3 * C_);
    arena_.want(block.mixed, N_ * C_);
    arena_.want(block.slope, N_ * 4 * C_);
    arena_.want(block.after, N_ * 4 * C_);
    arena_.want(block.log_sums, N_ * shape_.heads);
    const PlanBlock& p = parameters_.blocks[layer];
    products_.place(arena_, block.attention, kernels_.products.attention, p.attention.weight.weight, 3 * C_, C_);
    products_.place(arena_, block.attention_out, kernels_.products.attention_out, p.attention_out.weight.weight, C_,
                    C_);
    products_.place(arena_, block.fc, kernels_.products.fc, p.fc.weight.weight, 4 * C_, C_);
    products_.place(arena_, block.fc_out, kernels_.products.fc_out, p.fc_out.weight.weight, C_, 4 * C_);

    layer_of_sums = static_cast<std::int64_t>(layer);
    sum_of(p.ln_1.weight, C_), sum_of(p.ln_1.bias, C_), sum_of(p.attention.bias, 3 * C_);
    sum_of(p.attention_out.bias, C_), sum_of(p.ln_2.weight, C_), sum_of(p.ln_2.bias, C_);
    sum_of(p.fc.bias, 4 * C_), sum_of(p.fc_out.bias, C_);
  }
  layer_of_sums = shape_.layers;
  sum_of(parameters_.ln_f.weight, C_), sum_of(parameters_.ln_f.bias, C_);
  sum_of({}, C_);  // no bias is added below the first norm
  row_sums_each_ = offset;
  want_norm(ln_f_);
  products_.place(arena_, head_, kernels_.products.head, parameters_.head.weight, shape_.padded_vocab, C_);
  arena_.want(d_hidden_, N_ * C_);
  arena_.want(d_qkv_, N_ * 3 * C_);
  arena_.want(d_fc_, N_ * 4 * C_);
  arena_.want(d_mixed_, N_ * C_);
  for (float*& d_stream : d_stream_) arena_.want(d_stream, N_ * C_);
  if (!std::is_same_v<T, float>) {
    for (T*& d_added : d_added_) arena_.want(d_added, N_ * C_);
  }
  logit_rows_ = std::clamp<std::int64_t>(logit_bytes / (shape_.padded_vocab * 4) / 64 * 64, 64, (N_ + 63) / 64 * 64);
  arena_.want(logits_, std::min(logit_rows_, N_) * shape_.padded_vocab);
  arena_.want(losses_, N_);
  arena_.want(nothing_, rows_.each * C_);
  arena_.want(row_sums_, rows_.count() * row_sums_each_);
  scratch_each_ = scratch_elements();
  arena_.want(scratch_, scratch_each_ * shape_.workers);
  arena_.place_all();
}

template <class T>
std::int64_t Plan<T>::scratch_elements() const {
  const HeadShape head{shape_.length, C_ / shape_.heads, 3 * C_, C_};
  const std::int64_t chain = rows_.each * (4 * C_ + 4 * C_ + C_);  // left and result of a product, and one more row
  const std::int64_t logits = rows_.each * (C_ + gradient_columns);
  return (std::max({attention_scratch(head), std::max(chain, logits) + products_.panel_scratch(rows_.each),
                    gradient_scratch}) +
          15) /
         16 * 16;
}

// --- what the phases do
// -----------------------------------------------------------------------------------------------

// Embeddings, the first norm, the first queries, keys and values.
template <class T>
void Plan<T>::begin_rows(std::int64_t first, std::int64_t count, int worker) {
  const NormBuffers<T>& norm = blocks_.front().ln_1;
  {
    const Kernel of(*this, worker, "plan::embedding");
    for (std::int64_t row = first; row < first + count; ++row) {
      add(parameters_.tokens.weight + inputs_[row] * C_, parameters_.positions.weight + row % shape_.length * C_, C_,
          norm.sum + row * C_);
    }
    const PlanLayer& layer = parameters_.blocks.front().ln_1;
    float* const no_bias = scratch(worker);
    std::fill(no_bias, no_bias + C_, 0.0F);
    kernels_.add_norm({count, C_}, norm.sum + first * C_, nothing_, no_bias, layer.weight.weight, layer.bias.weight,
                      norm_eps, norm.sum + first * C_, norm.out + first * C_, norm.mean + first, norm.factor + first);
  }
  attention_rows(0, first, count, worker);
}

template <class T>
void Plan<T>::attention_rows(std::int64_t layer, std::int64_t first, std::int64_t count, int worker) {
  const BlockBuffers<T>& block = blocks_[static_cast<std::size_t>(layer)];
  rows_across(worker, "plan::qkv", block.ln_1.out + first * C_, block.attention, count,
              parameters_.blocks[static_cast<std::size_t>(layer)].attention.bias.weight, block.qkv + first * 3 * C_);
}

template <class T>
void Plan<T>::attention_task(std::int64_t layer, std::int64_t task, int worker) {
  const Kernel of(*this, worker, "plan::attention");
  const BlockBuffers<T>& block = blocks_[static_cast<std::size_t>(layer)];
  const std::int64_t length = shape_.length, d = C_ / shape_.heads;
  const std::int64_t sequence = task / shape_.heads, head = task % shape_.heads;
  const T* const q = block.qkv + sequence * length * 3 * C_ + head * d;
  kernels_.attention({length, d, 3 * C_, C_}, q, q + C_, q + 2 * C_, block.mixed + sequence * length * C_ + head * d,
                     block.log_sums + task * length, scratch(worker));
}

// Everything of a layer after its attention, and the next layer up to its
// attention.
template <class T>
void Plan<T>::block_rows(std::int64_t layer, std::int64_t first, std::int64_t count, int worker) {
  const BlockBuffers<T>& block = blocks_[static_cast<std::size_t>(layer)];
  const PlanBlock& p = parameters_.blocks[static_cast<std::size_t>(layer)];
  const bool last = layer + 1 == shape_.layers;
  T* const added = reinterpret_cast<T*>(scratch(worker) + rows_.each * 8 * C_);
  const auto norm = [&](const NormBuffers<T>& from, const PlanParameter& bias, const PlanLayer& weights,
                        const NormBuffers<T>& to) {
    const Kernel of(*this, worker, "plan::add_norm");
    kernels_.add_norm({count, C_}, from.sum + first * C_, added, bias.weight, weights.weight.weight,
                      weights.bias.weight, norm_eps, to.sum + first * C_, to.out + first * C_, to.mean + first,
                      to.factor + first);
  };
  rows_across(worker, "plan::attention_out", block.mixed + first * C_, block.attention_out, count, nullptr, added);
  norm(block.ln_1, p.attention_out.bias, p.ln_2, block.ln_2);
  rows_across(worker, "plan::fc", block.ln_2.out + first * C_, block.fc, count, nullptr, block.slope + first * 4 * C_);
  {
    const Kernel of(*this, worker, "plan::gelu");
    kernels_.gelu(block.slope + first * 4 * C_, p.fc.bias.weight, count, 4 * C_, block.after + first * 4 * C_);
  }
  rows_across(worker, "plan::fc_out", block.after + first * 4 * C_, block.fc_out, count, nullptr, added);
  norm(block.ln_2, p.fc_out.bias,
       last ? parameters_.ln_f : parameters_.blocks[static_cast<std::size_t>(layer + 1)].ln_1,
       last ? ln_f_ : blocks_[static_cast<std::size_t>(layer + 1)].ln_1);
  if (!last) attention_rows(layer + 1, first, count, worker);
}

// The gradient through the norm above `layer`'s MLP: layer + 1's first one, or
// the last.
template <class T>
void Plan<T>::norm_backward_rows(std::int64_t layer, std::int64_t block, int worker) {
  const std::int64_t first = rows_.begin(block), count = rows_.size(block);
  const bool last = layer + 1 == shape_.layers;
  const T* d_out = d_hidden_ + first * C_;
  if (!last) {
    const BlockBuffers<T>& above = blocks_[static_cast<std::size_t>(layer + 1)];
    T* const d_in = reinterpret_cast<T*>(scratch(worker) + rows_.each * 8 * C_);
    const T* const d_qkv = d_qkv_ + first * 3 * C_;
    rows_along(worker, "plan::qkv_backward", d_qkv, above.attention, count, d_in);
    d_out = d_in;
    add_columns(d_qkv, count, 3 * C_, sums_at(block, layer + 1, attention_bias));
  }
  const Kernel of(*this, worker, "plan::add_norm_backward");
  const NormBuffers<T>& norm = last ? ln_f_ : blocks_[static_cast<std::size_t>(layer + 1)].ln_1;
  const PlanLayer& weights = last ? parameters_.ln_f : parameters_.blocks[static_cast<std::size_t>(layer + 1)].ln_1;
  float* const unused = sums_at(block, shape_.layers, 2);
  const NormSums sums{sums_at(block, layer + 1, ln_1_weight), sums_at(block, layer + 1, ln_1_bias),
                      layer >= 0 ? sums_at(block, layer, fc_out_bias) : unused};
  kernels_.add_norm_backward({count, C_}, d_out, last ? nullptr : d_stream_[1] + first * C_, norm.sum + first * C_,
                             norm.mean + first, norm.factor + first, weights.weight.weight, d_stream_[0] + first * C_,
                             d_added_[0] ? d_added_[0] + first * C_ : nullptr, sums);
}

// The gradient through a layer's MLP, down to the output of its attention.
template <class T>
void Plan<T>::block_backward_rows(std::int64_t layer, std::int64_t block, int worker) {
  const std::int64_t first = rows_.begin(block), count = rows_.size(block);
  const BlockBuffers<T>& buffers = blocks_[static_cast<std::size_t>(layer)];
  T* const d_in = reinterpret_cast<T*>(scratch(worker) + rows_.each * 8 * C_);
  T* const d_fc = d_fc_ + first * 4 * C_;
  rows_along(worker, "plan::fc_out_backward", d_added(0) + first * C_, buffers.fc_out, count, d_fc);
  {
    const Kernel of(*this, worker, "plan::gelu_backward");
    kernels_.gelu_backward(buffers.slope + first * 4 * C_, count, 4 * C_, d_fc, sums_at(block, layer, fc_bias));
  }
  rows_along(worker, "plan::fc_backward", d_fc, buffers.fc, count, d_in);
  {
    const Kernel of(*this, worker, "plan::add_norm_backward");
    const NormBuffers<T>& norm = buffers.ln_2;
    const NormSums sums{sums_at(block, layer, ln_2_weight), sums_at(block, layer, ln_2_bias),
                        sums_at(block, layer, attention_out_bias)};
    kernels_.add_norm_backward({count, C_}, d_in, d_stream_[0] + first * C_, norm.sum + first * C_, norm.mean + first,
                               norm.factor + first,
                               parameters_.blocks[static_cast<std::size_t>(layer)].ln_2.weight.weight,
                               d_stream_[1] + first * C_, d_added_[1] ? d_added_[1] + first * C_ : nullptr, sums);
  }
  rows_along(worker, "plan::attention_out_backward", d_added(1) + first * C_, buffers.attention_out, count,
             d_mixed_ + first * C_);
}

template <class T>
void Plan<T>::attention_backward_task(std::int64_t layer, std::int64_t task, int worker) {
  const Kernel of(*this, worker, "plan::attention_backward");
  const BlockBuffers<T>& block = blocks_[static_cast<std::size_t>(layer)];
  const std::int64_t length = shape_.length, d = C_ / shape_.heads;
  const std::int64_t sequence = task / shape_.heads, head = task % shape_.heads;
  const std::int64_t in_qkv = sequence * length * 3 * C_ + head * d, in_mixed = sequence * length * C_ + head * d;
  kernels_.attention_backward({length, d, 3 * C_, C_},
                              HeadGradients<T>{.q = block.qkv + in_qkv,
                                               .k = block.qkv + in_qkv + C_,
                                               .v = block.qkv + in_qkv + 2 * C_,
                                               .out = block.mixed + in_mixed,
                                               .log_sums = block.log_sums + task * length,
                                               .d_out = d_mixed_ + in_mixed,
                                               .d_q = d_qkv_ + in_qkv,
                                               .d_k = d_qkv_ + in_qkv + C_,
                                               .d_v = d_qkv_ + in_qkv + 2 * C_},
                              scratch(worker));
}

template <class T>
void Plan<T>::weight_gradient(const PlanParameter& parameter, const PackedWeight<T>& shape, const T* d_out, const T* in,
                              std::int64_t task, int worker) {
  const Kernel of(*this, worker, "plan::weight_gradient");
  const Pieces rows{shape.out, gradient_rows}, columns{shape.in, gradient_columns}, depths{N_, gradient_depth};
  const std::int64_t row = rows.begin(task / columns.count()), column = columns.begin(task % columns.count());
  Product product{.rows = rows.size(task / columns.count()), .columns = columns.size(task % columns.count())};
  product.out = parameter.gradient + row * shape.in + column;
  product.out_row = shape.in;
  for (std::int64_t i = 0; i < depths.count(); ++i) {
    const std::int64_t token = depths.begin(i);
    product.depth = depths.size(i);
    product.add = add_ || i > 0;
    products_.gradient(d_out + token * shape.out + row, shape.out, in + token * shape.in + column, shape.in, product,
                       scratch(worker));
  }
}

// The same for the head, whose gradients of logits are float32 and come for
// `count` tokens from `first` on.
template <class T>
void Plan<T>::head_gradient(std::int64_t first, std::int64_t count, std::int64_t task, int worker) {
  const Kernel of(*this, worker, "plan::head_gradient");
  const std::int64_t V = shape_.padded_vocab;
  const Pieces rows{V, gradient_rows}, columns{C_, gradient_columns}, depths{count, gradient_depth};
  const std::int64_t row = rows.begin(task / columns.count()), column = columns.begin(task % columns.count());
  Product product{.rows = rows.size(task / columns.count()), .columns = columns.size(task % columns.count())};
  product.out = parameters_.head.gradient + row * C_ + column;
  product.out_row = C_;
  for (std::int64_t i = 0; i < depths.count(); ++i) {
    const std::int64_t token = depths.begin(i);
    product.depth = depths.size(i);
    product.add = add_ || first + i > 0;
    products_.gradient(logits_ + token * V + row, V, ln_f_.out + (first + token) * C_ + column, C_, product,
                       scratch(worker));
  }
}

// Some columns of what comes back through the head, for some rows of logits_, into scratch memory: (rows, columns).
template <class T>
void Plan<T>::hidden_gradient(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns,
                              int worker) {
  const std::int64_t V = shape_.padded_vocab;
  float* const out = scratch(worker);
  const Product product{.rows = rows,
                        .columns = columns,
                        .depth = V,
                        .left = logits_ + row * V,
                        .left_row = V,
                        .out = out,
                        .out_row = columns};
  products_.along(product, head_, column, out + rows_.each * gradient_columns);
}

// Some columns of the token embedding's gradient, token by token, so that equal
// tokens add up in the same order.
template <class T>
void Plan<T>::token_gradient(std::int64_t task) {
  const Pieces columns{C_, embedding_columns};
  const std::int64_t begin = columns.begin(task), size = columns.size(task);
  float* const gradient = parameters_.tokens.gradient + begin;
  if (!add_ && !shape_.tied_head) {
    for (std::int64_t token = 0; token < shape_.padded_vocab; ++token)
      std::fill(gradient + token * C_, gradient + token * C_ + size, 0.0F);
  }
  for (std::int64_t row = 0; row < N_; ++row)
    accumulate(d_stream_[0] + row * C_ + begin, size, gradient + inputs_[row] * C_);
}

template <class T>
void Plan<T>::position_gradient(std::int64_t task) {
  float* const gradient = parameters_.positions.gradient + task * C_;
  if (!add_) std::fill(gradient, gradient + C_, 0.0F);
  for (std::int64_t sequence = 0; sequence < shape_.sequences; ++sequence)
    accumulate(d_stream_[0] + (sequence * shape_.length + task) * C_, C_, gradient);
}

template <class T>
void Plan<T>::collect_sums(const RowSums& sums) {
  if (!add_) std::fill(sums.parameter.gradient, sums.parameter.gradient + sums.width, 0.0F);
  for (std::int64_t block = 0; block < rows_.count(); ++block)
    accumulate(row_sums_ + block * row_sums_each_ + sums.offset, sums.width, sums.parameter.gradient);
}

// --- the list of phases
// -----------------------------------------------------------------------------------------------

template <class T>
void Plan<T>::add_packing(PhaseMaker& maker, const PackedWeight<T>& packed) {
  maker.add(packed.pack_tasks(), [this, &packed](std::int64_t task, int worker) {
    const Kernel of(*this, worker, "plan::pack");
    products_.pack(packed, task);
  });
}

template <class T>
void Plan<T>::add_weight_gradient(PhaseMaker& maker, const PlanParameter& parameter, const PackedWeight<T>& packed,
                                  const T* d_out, const T* in) {
  const std::int64_t tasks = Pieces{packed.out, gradient_rows}.count() * Pieces{packed.in, gradient_columns}.count();
  maker.add(tasks, [=, this, &packed](std::int64_t task, int worker) {
    weight_gradient(parameter, packed, d_out, in, task, worker);
  });
}

template <class T>
void Plan<T>::make_phases() {
  PhaseMaker packing;
  add_packing(packing, head_);
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    const BlockBuffers<T>& block = blocks_[layer];
    add_packing(packing, block.attention);
    add_packing(packing, block.attention_out);
    add_packing(packing, block.fc);
    add_packing(packing, block.fc_out);
  }
  packing_.push_back(std::move(packing).phase());

  forward_.push_back({rows_.count(), [this](std::int64_t block, int worker) {
                        begin_rows(rows_.begin(block), rows_.size(block), worker);
                      }});
  for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
    forward_.push_back({shape_.sequences * shape_.heads,
                        [this, layer](std::int64_t task, int worker) { attention_task(layer, task, worker); }});
    forward_.push_back({rows_.count(), [this, layer](std::int64_t block, int worker) {
                          block_rows(layer, rows_.begin(block), rows_.size(block), worker);
                        }});
  }
  const Pieces chunks{N_, logit_rows_};
  for (std::int64_t i = 0; i < chunks.count(); ++i) make_classifier_phases(chunks.begin(i), chunks.size(i));
  make_backward_phases();

  const std::int64_t spans = std::ssize(spans_);
  norm_.push_back({spans, [this](std::int64_t task, int worker) {
                     const Kernel of(*this, worker, "plan::gradient_norm");
                     const Span& span = spans_[static_cast<std::size_t>(task)];
                     squares_[static_cast<std::size_t>(task)] =
                         sum_of_squares(all_[span.parameter].gradient + span.begin, span.size);
                   }});
  update_.push_back({spans, [this](std::int64_t task, int worker) {
                       const Kernel of(*this, worker, "plan::adamw");
                       const Span& span = spans_[static_cast<std::size_t>(task)];
                       const PlanParameter& p = all_[span.parameter];
                       kernels_.adamw(numbers_[span.parameter], p.gradient + span.begin, span.size,
                                      p.weight + span.begin, p.average + span.begin, p.squared_average + span.begin);
                     }});
}

// Logits, loss and their gradients of `count` tokens from `first` on; the
// logits' gradient replaces them.
template <class T>
void Plan<T>::make_classifier_phases(std::int64_t first, std::int64_t count) {
  const std::int64_t V = shape_.padded_vocab;
  const Pieces rows{count, rows_.each}, columns{V, logit_columns}, hidden{C_, gradient_columns},
      few{count, softmax_task_rows};
  const auto logits = [=, this](std::int64_t task, int worker) {
    const Kernel of(*this, worker, "plan::logits");
    const std::int64_t row = rows.begin(task / columns.count()), column = columns.begin(task % columns.count());
    const std::int64_t size = rows.size(task / columns.count()), width = columns.size(task % columns.count());
    const T* const hidden_rows = ln_f_.out + (first + row) * C_;
    float* const out = logits_ + row * V + column;
    float* const left = scratch(worker);
    products_.across(hidden_rows, C_, {.rows = size, .columns = width, .depth = C_, .out = out, .out_row = V}, head_,
                     column, {.left = left, .out = nullptr, .panels = left + rows_.each * C_});
  };
  const auto softmax = [=, this](std::int64_t task, int worker) {
    const Kernel of(*this, worker, "plan::softmax");
    const std::int64_t row = few.begin(task);
    kernels_.softmax(logits_ + row * V, few.size(task), V, shape_.vocab, targets_ + first + row, logit_scale_,
                     losses_ + first + row);
  };
  const auto d_hidden = [=, this](std::int64_t task, int worker) {
    const Kernel of(*this, worker, "plan::hidden_gradient");
    const std::int64_t row = rows.begin(task / hidden.count()), column = hidden.begin(task % hidden.count());
    const std::int64_t size = rows.size(task / hidden.count()), width = hidden.size(task % hidden.count());
    hidden_gradient(row, size, column, width, worker);
    const float* const out = scratch(worker);
    for (std::int64_t i = 0; i < size; ++i)
      add_bias(out + i * width, nullptr, 1, width, d_hidden_ + (first + row + i) * C_ + column);
  };
  const Phase product{rows.count() * columns.count(), logits}, losses{few.count(), softmax};
  for (auto* phases : {&loss_, &loss_and_gradient_}) {
    phases->push_back(product);
    phases->push_back(losses);
  }
  PhaseMaker gradients;
  gradients.add(Pieces{V, gradient_rows}.count() * hidden.count(),
                [=, this](std::int64_t task, int worker) { head_gradient(first, count, task, worker); });
  gradients.add(rows.count() * hidden.count(), d_hidden);
  loss_and_gradient_.push_back(std::move(gradients).phase());
}

template <class T>
void Plan<T>::add_row_sums(PhaseMaker& maker, std::int64_t layer) {
  for (const RowSums& sums : sums_) {
    if (sums.layer != layer) continue;
    maker.add(1, [&sums, this](std::int64_t, int worker) {
      const Kernel of(*this, worker, "plan::bias_gradients");
      collect_sums(sums);
    });
  }
}

// A layer's own phases, and the next one's first, compute its gradients: the row sums of its first norm and of its
// attention's bias come from the rows of the layer below.
template <class T>
void Plan<T>::make_backward_phases() {
  const std::int64_t heads = shape_.sequences * shape_.heads;
  layer_ends_.resize(static_cast<std::size_t>(shape_.layers));
  for (std::int64_t layer = shape_.layers - 1; layer >= -1; --layer) {
    PhaseMaker rows;
    if (layer + 1 < shape_.layers) {
      const BlockBuffers<T>& above = blocks_[static_cast<std::size_t>(layer + 1)];
      add_weight_gradient(rows, parameters_.blocks[static_cast<std::size_t>(layer + 1)].attention.weight,
                          above.attention, d_qkv_, above.ln_1.out);
    }
    rows.add(rows_.count(), [this, layer](std::int64_t block, int worker) {
      if (layer + 1 == shape_.layers) {
        float* const sums = row_sums_ + block * row_sums_each_;
        std::fill(sums, sums + row_sums_each_, 0.0F);
      }
      norm_backward_rows(layer, block, worker);
      if (layer >= 0) block_backward_rows(layer, block, worker);
    });
    backward_.push_back(std::move(rows).phase());
    PhaseMaker mixed;
    add_row_sums(mixed, layer + 1);
    if (layer >= 0) {
      const BlockBuffers<T>& block = blocks_[static_cast<std::size_t>(layer)];
      const PlanBlock& p = parameters_.blocks[static_cast<std::size_t>(layer)];
      add_weight_gradient(mixed, p.fc_out.weight, block.fc_out, d_added(0), block.after);
      add_weight_gradient(mixed, p.fc.weight, block.fc, d_fc_, block.ln_2.out);
      add_weight_gradient(mixed, p.attention_out.weight, block.attention_out, d_added(1), block.mixed);
      mixed.add(heads, [this, layer](std::int64_t task, int worker) { attention_backward_task(layer, task, worker); });
    } else {
      mixed.add(Pieces{C_, embedding_columns}.count(), [this](std::int64_t task, int worker) {
        const Kernel of(*this, worker, "plan::embedding_backward");
        token_gradient(task);
      });
      mixed.add(shape_.length, [this](std::int64_t task, int worker) {
        const Kernel of(*this, worker, "plan::embedding_backward");
        position_gradient(task);
      });
    }
    backward_.push_back(std::move(mixed).phase());
    if (layer + 1 < shape_.layers) layer_ends_[static_cast<std::size_t>(layer + 1)] = backward_.size();
  }
}

// --- the step
// ---------------------------------------------------------------------------------------------------------

template <class T>
double Plan<T>::forward(const std::int64_t* inputs, const std::int64_t* targets, double share, bool add) {
  inputs_ = inputs;
  targets_ = targets;
  add_ = add;
  logit_scale_ = static_cast<float>(share / static_cast<double>(N_));
  if (!packed_) crew_.run(packing_);
  packed_ = true;
  crew_.run(forward_);
  crew_.run(share == 0 ? loss_ : loss_and_gradient_);
  return std::accumulate(losses_, losses_ + N_, 0.0) / static_cast<double>(N_);
}

template <class T>
void Plan<T>::backward(bool add, const LayerDone& done) {
  add_ = add;
  if (!done) return crew_.run(backward_);
  // The phases from one layer's end to the next one's.
  std::size_t from = 0;
  for (std::int64_t layer = shape_.layers - 1; layer >= 0; --layer) {
    const std::size_t end = layer_ends_[static_cast<std::size_t>(layer)];
    crew_.run(std::span(backward_).subspan(from, end - from));
    done(layer);
    from = end;
  }
  crew_.run(std::span(backward_).subspan(from));
}

template <class T>
double Plan<T>::gradient_norm() {
  crew_.run(norm_);
  return std::sqrt(std::accumulate(squares_.begin(), squares_.end(), 0.0));
}

template <class T>
void Plan<T>::update(const Update& u) {
  const double correction1 = 1.0 - std::pow(u.beta1, static_cast<double>(u.step));
  const double correction2 = 1.0 - std::pow(u.beta2, static_cast<double>(u.step));
  for (std::size_t i = 0; i < all_.size(); ++i) {
    numbers_[i] = {.gradient_factor = static_cast<float>(u.gradient_factor),
                   .decay_factor = static_cast<float>(1.0 - u.lr * all_[i].weight_decay),
                   .gradient_share = static_cast<float>(1.0 - u.beta1),
                   .square_decay = static_cast<float>(u.beta2),
                   .square_share = static_cast<float>(1.0 - u.beta2),
                   .correction_sqrt = static_cast<float>(std::sqrt(correction2)),
                   .eps = static_cast<float>(u.eps),
                   .step_size = static_cast<float>(-u.lr / correction1)};
  }
  crew_.run(update_);
  packed_ = false;
}

}  // namespace

std::unique_ptr<GptPlan> GptPlan::make(const PlanShape& shape, const PlanParameters& parameters,
                                       const PlanKernels<float>& kernels) {
  return std::make_unique<Plan<float>>(shape, parameters, kernels);
}

std::unique_ptr<GptPlan> GptPlan::make(const PlanShape& shape, const PlanParameters& parameters,
                                       const PlanKernels<Bf16>& kernels) {
  return std::make_unique<Plan<Bf16>>(shape, parameters, kernels);
}

}  // namespace stepladder
