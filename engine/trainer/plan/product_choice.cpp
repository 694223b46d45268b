// Times each way to compute a product on all of the crew's threads at once, since they share memory bandwidth, and
// keeps the choice on disk for later runs. The first way stays unless another is 10 % faster, so that noise doesn't
// change a run's arithmetic.
#include "engine/trainer/plan/product_choice.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>

#include "engine/trainer/plan/crew.h"
#include "engine/trainer/plan/weight_products.h"

namespace stepladder {
namespace {

constexpr int rounds = 3;                    // the fastest counts
constexpr int probes = 2;                    // the first call of a library prepares it
constexpr double least_gain = 1.1;           // of another way over the first
constexpr std::int64_t probe_rows = 4;       // a way that takes longer for these than another for all is slower
constexpr std::int64_t head_columns = 4096;  // more than a cache holds in a wide model, as the whole head is

std::string in_ms(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f ms", seconds * 1e3);
  return text.data();
}

// One product with a thread's memory: y = x W^T and d_x = d_y W of `rows` rows, or a block of a weight's gradient.
template <class T>
class Trial {
 public:
  Trial(std::int64_t rows, std::int64_t out, std::int64_t in, bool is_gradient)
      : rows_(rows), out_(out), in_(in), is_gradient_(is_gradient) {
    const std::int64_t most = std::max(out, in);
    arena_.want(weight_, out * in);
    arena_.want(x_, rows * most);
    arena_.want(y_, rows * most);
    arena_.want(left_, rows * most);
    arena_.want(result_, std::max(rows * most, out * in));
    arena_.want(panels_, std::max(WeightProducts<T>::panel_scratch(rows), gradient_scratch));
    arena_.place_all();
    // Zeros could be faster than numbers.
    for (std::int64_t i = 0; i < out * in; ++i) weight_[i] = static_cast<float>(i % 17) / 16 - 0.5F;
    for (std::int64_t i = 0; i < rows * most; ++i) store(x_[i], static_cast<float>(i % 13) / 16 - 0.4F);
  }

  // `way` must outlive the runs.
  void prepare(const ProductWay<T>& way) {
    packed_.emplace();
    packed_weight_ = {};
    products_.emplace(way);
    products_->place(*packed_, packed_weight_, way, weight_, out_, in_);
    packed_->place_all();
    for (std::int64_t task = 0; task < packed_weight_.pack_tasks(); ++task) products_->pack(packed_weight_, task);
  }

  void run(std::int64_t rows) {
    if (is_gradient_) {
      const Product product{.rows = out_, .columns = in_, .depth = rows, .out = result_, .out_row = in_};
      products_->gradient(x_, out_, y_, in_, product, panels_);
      return;
    }
    const ProductScratch scratch{.left = left_, .out = result_, .panels = panels_};
    products_->rows_across(x_, packed_weight_, rows, nullptr, y_, scratch);
    products_->rows_along(x_, packed_weight_, rows, y_, scratch);
  }

 private:
  const std::int64_t rows_, out_, in_;
  const bool is_gradient_;
  Arena arena_;
  std::optional<Arena> packed_;
  PackedWeight<T> packed_weight_;
  std::optional<WeightProducts<T>> products_;
  float *weight_ = nullptr, *left_ = nullptr, *result_ = nullptr, *panels_ = nullptr;
  T *x_ = nullptr, *y_ = nullptr;
};

// The product on each of the crew's threads at once, as a step runs it: they share the memory's bandwidth, and a
// library may make them wait for each other.
template <class T>
class Trials {
 public:
  template <class... Shape>
  Trials(Crew& crew, std::int64_t rows, Shape... shape) : crew_(crew), rows_(rows) {
    for (int i = 0; i < crew.workers(); ++i) trials_.push_back(std::make_unique<Trial<T>>(rows, shape...));
  }

  double seconds(const ProductWay<T>& way, std::int64_t rows, int times, const Stopwatch& stopwatch) {
    for (const auto& trial : trials_) trial->prepare(way);
    const Phase phase{.tasks = crew_.workers(),
                      .work = [&](std::int64_t task, int) { trials_[static_cast<std::size_t>(task)]->run(rows); }};
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < times; ++i) least = std::min(least, stopwatch([&] { crew_.run({&phase, 1}); }));
    return least;
  }

  std::int64_t rows() const { return rows_; }

 private:
  Crew& crew_;
  const std::int64_t rows_;
  std::vector<std::unique_ptr<Trial<T>>> trials_;
};

// "qkv's way+attention_out's way+...", in the order of PlanProducts.
template <class T>
std::string names_of(const PlanProducts<T>& products) {
  std::string names;
  for (const ProductWay<T>* way : {&products.attention, &products.attention_out, &products.fc, &products.fc_out,
                                   &products.head, &products.gradient})
    names += (names.empty() ? "" : "+") + way->name;
  return names;
}

// ", bf16, 2 threads"
template <class T>
std::string conditions(const PlanShape& shape) {
  return (std::is_same_v<T, Bf16> ? ", bf16, " : ", float32, ") + std::to_string(shape.workers) +
         (shape.workers == 1 ? " thread" : " threads");
}

// "1 layers of 24, 2 heads, 80 tokens, batch 1 x 40, bf16, 2 threads"
template <class T>
std::string text_of(const PlanShape& shape) {
  return std::to_string(shape.layers) + " layers of " + std::to_string(shape.width) + ", " +
         std::to_string(shape.heads) + " heads, " + std::to_string(shape.padded_vocab) + " tokens, batch " +
         std::to_string(shape.sequences) + " x " + std::to_string(shape.length) + conditions<T>(shape);
}

struct Timed {
  std::size_t best = 0;
  std::string timings;
};

template <class T>
Timed time_ways(Trials<T>& trials, const std::vector<ProductWay<T>>& ways, const Stopwatch& stopwatch) {
  Timed timed;
  double first = 0, best = 0;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    if (i > 0) timed.timings += ", ";
    timed.timings += ways[i].name + " ";
    if (i > 0) {
      const double probe = trials.seconds(ways[i], std::min(probe_rows, trials.rows()), probes, stopwatch);
      if (probe > best) {
        timed.timings += "over " + in_ms(probe);
        continue;
      }
    }
    const double found = trials.seconds(ways[i], trials.rows(), rounds, stopwatch);
    timed.timings += in_ms(found);
    if (i == 0) first = best = found;
    if (found * least_gain < first && found < best) {
      best = found;
      timed.best = i;
    }
  }
  return timed;
}

}  // namespace

template <class T>
std::vector<ProductWay<T>> own_ways() {
  std::vector<ProductWay<T>> ways = {own_way<T>()};
  const auto add = [&](PairUnit unit) {
    ProductWay<T> way;
    way.pairs = unit;
    way.name = name_of(unit);
    ways.push_back(way);
  };
  if (ways.front().pairs == PairUnit::amx) add(PairUnit::avx512_bf16);  // each CPU with AMX has it
  if (ways.front().pairs != PairUnit::none) add(PairUnit::none);
  return ways;
}

Stopwatch wall_clock() {
  return [](const std::function<void()>& call) {
    const auto began = std::chrono::steady_clock::now();
    call();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
}

template <class T>
ChosenProducts<T> choose_products(const PlanShape& shape, const std::vector<ProductWay<T>>& ways, KeptChoices& kept,
                                  double budget_s, const Stopwatch& stopwatch) {
  ChosenProducts<T> chosen{.products = PlanProducts<T>::all_by(ways.front())};
  const std::int64_t C = shape.width, tokens = shape.sequences * shape.length;
  const std::int64_t rows = std::min<std::int64_t>(C <= small_width ? 64 : 128, tokens);
  double used_s = 0;
  std::unique_ptr<Crew> crew;  // once there is something to time
  const auto choose = [&](const char* name, std::int64_t depth, std::int64_t out, std::int64_t in, ProductWay<T>& way) {
    const bool is_gradient = &way == &chosen.products.gradient;
    std::string key = std::to_string(is_gradient ? out : depth) + " x " + std::to_string(is_gradient ? in : out) +
                      " x " + std::to_string(is_gradient ? depth : in) + (is_gradient ? ", gradient" : " and back") +
                      conditions<T>(shape);
    const auto by_name = [&](const std::string& wanted) {
      return std::ranges::find_if(ways, [&](const auto& each) { return each.name == wanted; });
    };
    std::string timings = "not timed: the budget is used up";
    if (const KeptChoice* known = kept.find(key); known && by_name(known->name) != ways.end()) {
      way = *by_name(known->name);
      timings = known->timings;
    } else if (used_s < budget_s) {
      used_s += wall_clock()([&] {
        if (!crew) crew = std::make_unique<Crew>(shape.workers);
        Trials<T> trials(*crew, depth, out, in, is_gradient);
        const Timed timed = time_ways(trials, ways, stopwatch);
        way = ways[timed.best];
        timings = timed.timings;
      });
      kept.keep(key, {way.name, timings});
    }
    chosen.lines.push_back("product " + std::string(name) + ", " + key + ": " + way.name + " (" + timings + ")");
  };
  choose("qkv", rows, 3 * C, C, chosen.products.attention);
  choose("attention_out", rows, C, C, chosen.products.attention_out);
  choose("fc", rows, 4 * C, C, chosen.products.fc);
  choose("fc_out", rows, C, 4 * C, chosen.products.fc_out);
  choose("logits", rows, std::min(head_columns, shape.padded_vocab), C, chosen.products.head);
  choose("weight_gradient", std::min(gradient_depth, tokens), std::min(gradient_rows, 3 * C),
         std::min(gradient_columns, C), chosen.products.gradient);
  kept.save();
  return chosen;
}

template <class T>
void confirm_by_steps(const PlanShape& shape, const ProductWay<T>& first, KeptChoices& kept,
                      const std::function<double(const PlanProducts<T>&)>& step_s, ChosenProducts<T>& chosen) {
  const PlanProducts<T> all_first = PlanProducts<T>::all_by(first);
  const std::string names = names_of(chosen.products);
  if (names == names_of(all_first)) return;
  const std::string key = "all in a step, " + text_of<T>(shape);
  KeptChoice answer;
  if (const KeptChoice* known = kept.find(key); known && (known->name == names || known->name == first.name)) {
    answer = *known;
  } else {
    const double mixed_s = step_s(chosen.products), first_s = step_s(all_first);
    answer = {mixed_s < first_s ? names : first.name,
              names + " " + in_ms(mixed_s) + ", " + first.name + " " + in_ms(first_s)};
    kept.keep(key, answer);
    kept.save();
  }
  chosen.lines.push_back(key + ": " + answer.name + " (" + answer.timings + ")");
  if (answer.name != names) chosen.products = all_first;
}

template <class T>
StepChoice choose_step(const PlanShape& shape, KeptChoices& kept, const std::function<double()>& plan_s,
                       const std::function<double()>& compiled_s) {
  const std::string key = "whole step, " + text_of<T>(shape);
  if (const KeptChoice* known = kept.find(key)) return {known->name != "compile", known->timings};
  double plan = plan_s(), compiled = compiled_s();
  // A second look, since another program may have slowed the plan only.
  if (compiled * least_gain < plan) {
    plan = std::min(plan, plan_s());
    compiled = std::min(compiled, compiled_s());
  }
  StepChoice choice{!(compiled * least_gain < plan), "plan " + in_ms(plan) + ", compile " + in_ms(compiled)};
  kept.keep(key, {choice.is_plan ? "plan" : "compile", choice.timings});
  kept.save();
  return choice;
}

template std::vector<ProductWay<float>> own_ways();
template std::vector<ProductWay<Bf16>> own_ways();
template ChosenProducts<float> choose_products(const PlanShape& shape, const std::vector<ProductWay<float>>& ways,
                                               KeptChoices& kept, double budget_s, const Stopwatch& stopwatch);
template ChosenProducts<Bf16> choose_products(const PlanShape& shape, const std::vector<ProductWay<Bf16>>& ways,
                                              KeptChoices& kept, double budget_s, const Stopwatch& stopwatch);

template void confirm_by_steps(const PlanShape& shape, const ProductWay<float>& first, KeptChoices& kept,
                               const std::function<double(const PlanProducts<float>&)>& step_s,
                               ChosenProducts<float>& chosen);
template void confirm_by_steps(const PlanShape& shape, const ProductWay<Bf16>& first, KeptChoices& kept,
                               const std::function<double(const PlanProducts<Bf16>&)>& step_s,
                               ChosenProducts<Bf16>& chosen);

template StepChoice choose_step<float>(const PlanShape& shape, KeptChoices& kept, const std::function<double()>& plan_s,
                                       const std::function<double()>& compiled_s);
template StepChoice choose_step<Bf16>(const PlanShape& shape, KeptChoices& kept, const std::function<double()>& plan_s,
                                      const std::function<double()>& compiled_s);

}  // namespace stepladder
