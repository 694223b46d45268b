// The backward pass of the plan: gradients of rows, weights, biases, norms and embeddings.
#include <algorithm>
#include <span>

#include "engine/trainer/plan/gpt_plan_parts.h"

namespace stepladder {

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
  const Kernel of(*this, worker, "plan::add_norm_backward", norm_backward_work(count));
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
    const Kernel of(*this, worker, "plan::gelu_backward", moved(count * 4 * C_, 3 * sizeof(T)));
    kernels_.gelu_backward(buffers.slope + first * 4 * C_, count, 4 * C_, d_fc, sums_at(block, layer, fc_bias));
  }
  rows_along(worker, "plan::fc_backward", d_fc, buffers.fc, count, d_in);
  {
    const Kernel of(*this, worker, "plan::add_norm_backward", norm_backward_work(count));
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
  const Head head = head_of(task);
  const Kernel of(*this, worker, "plan::attention_backward", attention_work(head.shape, 10, 8));
  const BlockBuffers<T>& block = blocks_[static_cast<std::size_t>(layer)];
  const T* const q = block.qkv + head.in_qkv;
  T* const d_q = d_qkv_ + head.in_qkv;
  kernels_.attention_backward(head.shape,
                              HeadGradients<T>{.q = q,
                                               .k = q + C_,
                                               .v = q + 2 * C_,
                                               .out = block.mixed + head.in_mixed,
                                               .log_sums = block.log_sums + head.in_log_sums,
                                               .d_out = d_mixed_ + head.in_mixed,
                                               .d_q = d_q,
                                               .d_k = d_q + C_,
                                               .d_v = d_q + 2 * C_},
                              scratch(worker));
}

template <class T>
void Plan<T>::weight_gradient(const PlanParameter& parameter, const PackedWeight<T>& shape, const T* d_out, const T* in,
                              std::int64_t task, int worker) {
  const Pieces rows{shape.out, gradient_rows}, columns{shape.in, gradient_columns}, depths{N_, gradient_depth};
  const std::int64_t row = rows.begin(task / columns.count()), column = columns.begin(task % columns.count());
  Product product{.rows = rows.size(task / columns.count()), .columns = columns.size(task % columns.count())};
  const Kernel of(*this, worker, "plan::weight_gradient",
                  product_work(product.rows, N_, product.columns, sizeof(float)));
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

// The same for the head, whose gradients of logits are float32, for `count` tokens from `first` on.
template <class T>
void Plan<T>::head_gradient(std::int64_t first, std::int64_t count, std::int64_t task, int worker) {
  const std::int64_t V = shape_.padded_vocab;
  const Pieces rows{V, gradient_rows}, columns{C_, gradient_columns}, depths{count, gradient_depth};
  const std::int64_t row = rows.begin(task / columns.count()), column = columns.begin(task % columns.count());
  Product product{.rows = rows.size(task / columns.count()), .columns = columns.size(task % columns.count())};
  const Kernel of(*this, worker, "plan::head_gradient",
                  product_work(product.rows, count, product.columns, sizeof(float), sizeof(float)));
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

// Writes some columns of the gradient that passes through the head, for some rows of logits_, into scratch memory:
// (rows, columns).
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

template <class T>
void Plan<T>::add_weight_gradient(PhaseMaker& maker, const PlanParameter& parameter, const PackedWeight<T>& packed,
                                  const T* d_out, const T* in) {
  const std::int64_t tasks = Pieces{packed.out, gradient_rows}.count() * Pieces{packed.in, gradient_columns}.count();
  maker.add(tasks, [=, this, &packed](std::int64_t task, int worker) {
    weight_gradient(parameter, packed, d_out, in, task, worker);
  });
}

template <class T>
void Plan<T>::add_row_sums(PhaseMaker& maker, std::int64_t layer) {
  for (const RowSums& sums : sums_) {
    if (sums.layer != layer) continue;
    maker.add(1, [&sums, this](std::int64_t, int worker) {
      const Kernel of(*this, worker, "plan::bias_gradients", moved((rows_.count() + 1) * sums.width, sizeof(float)));
      collect_sums(sums);
    });
  }
}

// A layer's own phases, and the next one's first, compute its gradients: the row sums of its first norm and of its
// attention's bias come from the rows of the layer below.
template <class T>
void Plan<T>::make_backward_phases() {
  const std::int64_t heads = shape_.sequences * shape_.heads;
  // Five products over the triangle of a head, against one of a weight gradient.
  const bool long_heads =
      5 * shape_.length * C_ > 2 * shape_.sequences * shape_.heads * gradient_rows * gradient_columns;
  layer_ends_.resize(static_cast<std::size_t>(shape_.layers));
  for (std::int64_t layer = shape_.layers - 1; layer >= -1; --layer) {
    PhaseMaker rows;
    rows.add(rows_.count(), [this, layer](std::int64_t block, int worker) {
      if (layer + 1 == shape_.layers) {
        float* const sums = row_sums_ + block * row_sums_each_;
        std::fill(sums, sums + row_sums_each_, 0.0F);
      }
      norm_backward_rows(layer, block, worker);
      if (layer >= 0) block_backward_rows(layer, block, worker);
    });
    if (layer + 1 < shape_.layers) {
      const BlockBuffers<T>& above = blocks_[static_cast<std::size_t>(layer + 1)];
      add_weight_gradient(rows, parameters_.blocks[static_cast<std::size_t>(layer + 1)].attention.weight,
                          above.attention, d_qkv_, above.ln_1.out);
    }
    backward_.push_back(std::move(rows).phase());
    PhaseMaker mixed;
    const auto add_heads = [&] {
      mixed.add(heads, [this, layer](std::int64_t task, int worker) { attention_backward_task(layer, task, worker); });
    };
    if (layer >= 0) {
      // The longest tasks first, so that short ones are left when the first thread ends.
      if (long_heads) add_heads();
      const BlockBuffers<T>& block = blocks_[static_cast<std::size_t>(layer)];
      const PlanBlock& p = parameters_.blocks[static_cast<std::size_t>(layer)];
      add_weight_gradient(mixed, p.fc_out.weight, block.fc_out, d_added(0), block.after);
      add_weight_gradient(mixed, p.fc.weight, block.fc, d_fc_, block.ln_2.out);
      add_weight_gradient(mixed, p.attention_out.weight, block.attention_out, d_added(1), block.mixed);
      if (!long_heads) add_heads();
    } else {
      const std::int64_t V = shape_.padded_vocab;
      mixed.add(Pieces{C_, embedding_columns}.count(), [this, V](std::int64_t task, int worker) {
        const std::int64_t width = Pieces{C_, embedding_columns}.size(task);
        const Kernel of(*this, worker, "plan::embedding_backward", moved((N_ + V) * width, sizeof(float)));
        token_gradient(task);
      });
      mixed.add(shape_.length, [this](std::int64_t task, int worker) {
        const Kernel of(*this, worker, "plan::embedding_backward", moved((shape_.sequences + 1) * C_, sizeof(float)));
        position_gradient(task);
      });
    }
    add_row_sums(mixed, layer + 1);
    backward_.push_back(std::move(mixed).phase());
    if (layer + 1 < shape_.layers) layer_ends_[static_cast<std::size_t>(layer + 1)] = backward_.size();
  }
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

template class Plan<float>;
template class Plan<Bf16>;

}  // namespace stepladder
