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

struct StepChoice {
  bool is_plan = true;
  std::string timings;  // "plan 31.000 ms, compile 35.600 ms"
};

// Chooses between a whole step by the plan and one by `compile`'s operations: the plan unless the other is faster by a
// tenth. Each function returns a step's seconds. The answer is kept.
template <class T>
StepChoice choose_step(const PlanShape& shape, KeptChoices& kept, const std::function<double()>& plan_s,
                       const std::function<double()>& compiled_s);

}  // namespace stepladder
