// Chooses the way in which a plan computes each of its products: each way is timed on the product's shape and on the
// plan's threads, once for each machine. Uses no torch.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/trainer/cache/kept_choices.h"
#include "engine/trainer/plan/gpt_plan.h"

namespace stepladder {

// The plan's own ways on this CPU, the one that is expected to be the fastest first.
template <class T>
std::vector<ProductWay<T>> own_ways();

// Seconds that a call takes.
using Stopwatch = std::function<double(const std::function<void()>&)>;
Stopwatch wall_clock();

template <class T>
struct ChosenProducts {
  PlanProducts<T> products;
  // "fc, 64 x 512 x 128 and back, bf16, 2 threads: AMX (AMX 0.021 ms, LibTorch 0.240 ms)"
  std::vector<std::string> lines;
};

// Chooses the first of `ways` for each product unless another one is faster by a tenth. Timing ends when `budget_s` is
// used up; products that weren't timed by then take the first way, which isn't kept. shape.workers threads compute the
// product at once.
template <class T>
ChosenProducts<T> choose_products(const PlanShape& shape, const std::vector<ProductWay<T>>& ways, KeptChoices& kept,
                                  double budget_s, const Stopwatch& stopwatch);

// What was chosen product by product must be faster in a whole step too: other products compete for the caches there.
// `step_s` makes a plan with the products and returns a step's seconds. If `first` for all products is as fast, it
// replaces the choice. The answer is kept, and a line of it added. Does nothing if `first` was chosen throughout.
template <class T>
void confirm_by_steps(const PlanShape& shape, const ProductWay<T>& first, KeptChoices& kept,
                      const std::function<double(const PlanProducts<T>&)>& step_s, ChosenProducts<T>& chosen);

}  // namespace stepladder
