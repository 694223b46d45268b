// The plan's gradient norm and optimiser.
#include <cmath>
#include <numeric>

#include "engine/trainer/plan/gpt_plan_parts.h"

namespace stepladder {

template <class T>
void Plan<T>::make_update_phases() {
  const std::int64_t spans = std::ssize(spans_);
  norm_.push_back({spans, [this](std::int64_t task, int worker) {
                     const Span& span = spans_[static_cast<std::size_t>(task)];
                     const Kernel of(*this, worker, "plan::gradient_norm", moved(span.size, sizeof(float)));
                     squares_[static_cast<std::size_t>(task)] =
                         sum_of_squares(all_[span.parameter].gradient + span.begin, span.size);
                   }});
  update_.push_back({spans, [this](std::int64_t task, int worker) {
                       const Span& span = spans_[static_cast<std::size_t>(task)];
                       // Reads gradient, weight and both moments, and writes all but the gradient.
                       const Kernel of(*this, worker, "plan::adamw", moved(span.size, 7 * sizeof(float)));
                       const PlanParameter& p = all_[span.parameter];
                       kernels_.adamw(numbers_[span.parameter], p.gradient + span.begin, span.size,
                                      p.weight + span.begin, p.average + span.begin, p.squared_average + span.begin);
                     }});
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

template class Plan<float>;
template class Plan<Bf16>;

}  // namespace stepladder
