// The forward pass of the plan: rows through the blocks, and the classifier with the gradients that it has at once.
#include <algorithm>
#include <numeric>

#include "engine/trainer/plan/gpt_plan_parts.h"

namespace stepladder {

// Embeddings, the first norm, the first queries, keys and values.
template <class T>
void Plan<T>::begin_rows(std::int64_t first, std::int64_t count, int worker) {
  const NormBuffers<T>& norm = blocks_.front().ln_1;
  {
    const Kernel of(*this, worker, "plan::embedding", moved(count * C_, 3 * sizeof(float) + sizeof(T)));
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
  const Head head = head_of(task);
  const Kernel of(*this, worker, "plan::attention", attention_work(head.shape, 4, 4));
  const BlockBuffers<T>& block = blocks_[static_cast<std::size_t>(layer)];
  const T* const q = block.qkv + head.in_qkv;
  kernels_.attention(head.shape, q, q + C_, q + 2 * C_, block.mixed + head.in_mixed, block.log_sums + head.in_log_sums,
                     scratch(worker));
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
    const Kernel of(*this, worker, "plan::add_norm", moved(count * C_, 2 * sizeof(float) + 2 * sizeof(T)));
    kernels_.add_norm({count, C_}, from.sum + first * C_, added, bias.weight, weights.weight.weight,
                      weights.bias.weight, norm_eps, to.sum + first * C_, to.out + first * C_, to.mean + first,
                      to.factor + first);
  };
  rows_across(worker, "plan::attention_out", block.mixed + first * C_, block.attention_out, count, nullptr, added);
  norm(block.ln_1, p.attention_out.bias, p.ln_2, block.ln_2);
  rows_across(worker, "plan::fc", block.ln_2.out + first * C_, block.fc, count, nullptr, block.slope + first * 4 * C_);
  {
    const Kernel of(*this, worker, "plan::gelu", moved(count * 4 * C_, 3 * sizeof(T)));
    kernels_.gelu(block.slope + first * 4 * C_, p.fc.bias.weight, count, 4 * C_, block.after + first * 4 * C_);
  }
  rows_across(worker, "plan::fc_out", block.after + first * 4 * C_, block.fc_out, count, nullptr, added);
  norm(block.ln_2, p.fc_out.bias,
       last ? parameters_.ln_f : parameters_.blocks[static_cast<std::size_t>(layer + 1)].ln_1,
       last ? ln_f_ : blocks_[static_cast<std::size_t>(layer + 1)].ln_1);
  if (!last) attention_rows(layer + 1, first, count, worker);
}

// Logits, loss and their gradients of `count` tokens from `first` on; the
// logits' gradient replaces them.
template <class T>
void Plan<T>::make_classifier_phases(std::int64_t first, std::int64_t count) {
  const std::int64_t V = shape_.padded_vocab;
  const Pieces rows{count, rows_.each}, columns{V, logit_columns}, hidden{C_, gradient_columns},
      few{count, softmax_task_rows};
  const auto logits = [=, this](std::int64_t task, int worker) {
    const std::int64_t row = rows.begin(task / columns.count()), column = columns.begin(task % columns.count());
    const std::int64_t size = rows.size(task / columns.count()), width = columns.size(task % columns.count());
    const Kernel of(*this, worker, "plan::logits", product_work(size, C_, width, sizeof(float)));
    const T* const hidden_rows = ln_f_.out + (first + row) * C_;
    float* const out = logits_ + row * V + column;
    float* const left = scratch(worker);
    products_.across(hidden_rows, C_, {.rows = size, .columns = width, .depth = C_, .out = out, .out_row = V}, head_,
                     column, {.left = left, .out = nullptr, .panels = left + rows_.each * C_});
  };
  const auto softmax = [=, this](std::int64_t task, int worker) {
    const Kernel of(*this, worker, "plan::softmax", moved(few.size(task) * V, 2 * sizeof(float)));
    const std::int64_t row = few.begin(task);
    kernels_.softmax(logits_ + row * V, few.size(task), V, shape_.vocab, targets_ + first + row, logit_scale_,
                     losses_ + first + row);
  };
  const auto d_hidden = [=, this](std::int64_t task, int worker) {
    const std::int64_t row = rows.begin(task / hidden.count()), column = hidden.begin(task % hidden.count());
    const std::int64_t size = rows.size(task / hidden.count()), width = hidden.size(task % hidden.count());
    const Kernel of(*this, worker, "plan::hidden_gradient", product_work(size, V, width, sizeof(T), sizeof(float)));
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

template class Plan<float>;
template class Plan<Bf16>;

}  // namespace stepladder
