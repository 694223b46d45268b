// Lays out the plan: every buffer in one arena, then the list of phases for forward, backward and update. A new buffer
// needs a line in `place`; the work of a phase is in gpt_plan_forward.cpp, gpt_plan_backward.cpp and
// gpt_plan_update.cpp.
#include <algorithm>
#include <type_traits>

#include "engine/trainer/plan/gpt_plan_parts.h"

namespace stepladder {

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
  const std::int64_t chain = rows_.each * (4 * C_ + 4 * C_ + C_);  // left and result of a product, and one more row
  const std::int64_t logits = rows_.each * (C_ + gradient_columns);
  return (std::max({attention_scratch(head_of(0).shape), std::max(chain, logits) + products_.panel_scratch(rows_.each),
                    gradient_scratch}) +
          15) /
         16 * 16;
}

template <class T>
void Plan<T>::add_packing(PhaseMaker& maker, const PackedWeight<T>& packed) {
  maker.add(packed.pack_tasks(), [this, &packed](std::int64_t task, int worker) {
    const Kernel of(*this, worker, "plan::pack",
                    moved(packed.out * packed.in * 2 / packed.pack_tasks(), sizeof(float) + sizeof(T)));
    products_.pack(packed, task);
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
  make_update_phases();
}

template class Plan<float>;
template class Plan<Bf16>;

std::unique_ptr<GptPlan> GptPlan::make(const PlanShape& shape, const PlanParameters& parameters,
                                       const PlanKernels<float>& kernels) {
  return std::make_unique<Plan<float>>(shape, parameters, kernels);
}

std::unique_ptr<GptPlan> GptPlan::make(const PlanShape& shape, const PlanParameters& parameters,
                                       const PlanKernels<Bf16>& kernels) {
  return std::make_unique<Plan<Bf16>>(shape, parameters, kernels);
}

}  // namespace stepladder
