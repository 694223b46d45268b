// Runs the products of pairs with every instruction that this CPU has for them (AMX, AVX512-BF16), and whole small
// plans, and holds them against plain C++. It uses neither LibTorch nor GoogleTest, so it can be linked statically and
// run without an operating system on a machine that Bochs emulates (in_bochs.py). Prints what it checked; exit status
// 1: something differs.
#include <cpuid.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "engine/trainer/plan/gpt_plan.h"
#include "engine/trainer/plan/pair_products.h"

namespace stepladder {
namespace {

int checks = 0, failures = 0;
bool alone_on_its_machine = false;  // there are no other threads

void expect(bool holds, const std::string& what) {
  ++checks;
  if (holds) return;
  ++failures;
  std::printf("FAILED: %s\n", what.c_str());
}

// The same numbers on any machine, within [-1, 1).
class Numbers {
 public:
  float next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<float>(static_cast<double>(state_ >> 40) / (1 << 23) - 1.0);
  }
  std::vector<float> some(std::int64_t n, float scale = 1) {
    std::vector<float> numbers(static_cast<std::size_t>(n));
    for (float& x : numbers) x = scale * next();
    return numbers;
  }

 private:
  std::uint64_t state_ = 20260001;
};

std::vector<Bf16> halves(const std::vector<float>& from) {
  std::vector<Bf16> to(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) store(to[i], from[i]);
  return to;
}

std::vector<float> floats(const std::vector<Bf16>& from) {
  std::vector<float> to(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = load(from[i]);
  return to;
}

// The plain ones, and what this CPU has: each CPU with AMX has AVX512-BF16 too.
std::vector<PairUnit> units_here() {
  std::vector<PairUnit> units = {PairUnit::plain, PairUnit::plain_tiles};
  if (pair_unit() == PairUnit::amx || pair_unit() == PairUnit::avx512_bf16) units.push_back(PairUnit::avx512_bf16);
  if (pair_unit() == PairUnit::amx) units.push_back(PairUnit::amx);
  return units;
}

struct Size {
  std::int64_t rows, columns, depth;
};

// How a product is asked for, as the plan does it: forwards from W, backwards from its transpose, weight gradients from
// bf16; and a product in two pieces of the depth.
enum class Way { from_weight, from_transpose, from_half, in_pieces, count };

struct Factors {
  std::vector<Bf16> left, right;
  std::vector<float> start;
};

std::vector<Bf16> panels_of(const std::vector<Bf16>& right, Size s, Way way) {
  std::vector<Bf16> panels(static_cast<std::size_t>(pair_elements(s.depth, s.columns)), static_cast<Bf16>(0x7FC0));
  const std::vector<float> whole = floats(right);
  if (way == Way::from_transpose) {
    std::vector<float> turned(whole.size());
    for (std::int64_t k = 0; k < s.depth; ++k)
      for (std::int64_t j = 0; j < s.columns; ++j)
        turned[static_cast<std::size_t>(j * s.depth + k)] = whole[static_cast<std::size_t>(k * s.columns + j)];
    pack_pairs_transposed(turned.data(), s.depth, s.depth, s.columns, panels.data());
  } else if (way == Way::from_half) {
    pack_pairs(right.data(), s.columns, s.depth, s.columns, panels.data());
  } else {
    pack_pairs(whole.data(), s.columns, s.depth, s.columns, panels.data());
  }
  return panels;
}

std::vector<float> product_of(const Factors& f, Size s, Way way, bool add) {
  const std::vector<Bf16> panels = panels_of(f.right, s, way);
  std::vector<float> out = f.start;
  PairProduct product{.rows = s.rows,
                      .columns = s.columns,
                      .depth = s.depth,
                      .left = f.left.data(),
                      .left_row = s.depth,
                      .out = out.data(),
                      .out_row = s.columns,
                      .add = add};
  constexpr std::int64_t piece = 32;
  if (way == Way::in_pieces && s.depth > piece) {
    product.panel_depth = s.depth;
    product.depth = piece;
    multiply(product, panels.data());
    product.left += piece;
    product.depth = s.depth - piece;
    product.add = true;
    multiply(product, panels.data() + piece * panel_columns);
  } else {
    multiply(product, panels.data());
  }
  return out;
}

// Of the largest element.
double gap(const std::vector<float>& found, const std::vector<double>& exact) {
  double most = 0, largest = 1e-30;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    most = std::max(most, std::abs(found[i] - exact[i]));
    largest = std::max(largest, std::abs(exact[i]));
  }
  return most / largest;
}

std::vector<double> exact_product(const Factors& f, Size s, bool add) {
  const std::vector<float> left = floats(f.left), right = floats(f.right);
  std::vector<double> exact(f.start.size());
  for (std::size_t i = 0; i < exact.size(); ++i) exact[i] = add ? f.start[i] : 0;
  for (std::int64_t i = 0; i < s.rows; ++i)
    for (std::int64_t k = 0; k < s.depth; ++k)
      for (std::int64_t j = 0; j < s.columns; ++j)
        exact[static_cast<std::size_t>(i * s.columns + j)] +=
            static_cast<double>(left[static_cast<std::size_t>(i * s.depth + k)]) *
            right[static_cast<std::size_t>(k * s.columns + j)];
  return exact;
}

void check_products(PairUnit unit) {
  use_pair_unit(unit);
  Numbers numbers;
  double most = 0;
  int products = 0;
  for (const Size s : {Size{1, 1, 1},
                       {63, 65, 100},
                       {13, 16, 257},
                       {16, 33, 64},
                       {33, 32, 31},
                       {64, 96, 128},
                       {20, 20, 2100},
                       {128, 50, 96}}) {
    const Factors f{halves(numbers.some(s.rows * s.depth)), halves(numbers.some(s.depth * s.columns)),
                    numbers.some(s.rows * s.columns)};
    for (const bool add : {false, true}) {
      const std::vector<double> exact = exact_product(f, s, add);
      for (int way = 0; way < static_cast<int>(Way::count); ++way) {
        const double found = gap(product_of(f, s, static_cast<Way>(way), add), exact);
        expect(found < 1e-5, std::string(name_of(unit)) + ": " + std::to_string(s.rows) + " x " +
                                 std::to_string(s.columns) + " x " + std::to_string(s.depth) + ", way " +
                                 std::to_string(way) + ": " + std::to_string(found) + " of the largest element");
        most = std::max(most, found);
        ++products;
      }
    }
  }
  std::printf("%s: %d products, at most %.1e of the largest element from double\n", name_of(unit), products, most);
}

// A product that is split by rows has the same bits; what isn't a number stays in its row.
void check_rows(PairUnit unit) {
  use_pair_unit(unit);
  Numbers numbers;
  const Size whole{70, 80, 301};
  Factors f{halves(numbers.some(whole.rows * whole.depth)), halves(numbers.some(whole.depth * whole.columns)),
            std::vector<float>(static_cast<std::size_t>(whole.rows * whole.columns))};
  const std::vector<float> all = product_of(f, whole, Way::from_weight, false);
  const Size lower{39, whole.columns, whole.depth};
  const Factors part{{f.left.begin() + 31 * whole.depth, f.left.end()},
                     f.right,
                     std::vector<float>(static_cast<std::size_t>(lower.rows * lower.columns))};
  const std::vector<float> some = product_of(part, lower, Way::from_transpose, false);
  expect(std::equal(some.begin(), some.end(), all.begin() + 31 * whole.columns),
         std::string(name_of(unit)) + ": a product split by rows has other bits");

  store(f.left[static_cast<std::size_t>(33 * whole.depth + 5)], std::numeric_limits<float>::quiet_NaN());
  const std::vector<float> odd = product_of(f, whole, Way::from_weight, false);
  for (std::int64_t i = 0; i < whole.rows; ++i)
    for (std::int64_t j = 0; j < whole.columns; ++j)
      if (std::isnan(odd[static_cast<std::size_t>(i * whole.columns + j)]) != (i == 33)) {
        expect(false, std::string(name_of(unit)) + ": NaN in the wrong row " + std::to_string(i));
        return;
      }
  expect(true, "");
}

// Another library on the same thread remembers the configuration that it has loaded.
void check_configuration() {
  struct alignas(64) Configuration {
    std::uint8_t bytes[64] = {};
  } theirs, found;
  theirs.bytes[0] = 1;  // palette
  for (int tile = 0; tile < 3; ++tile) theirs.bytes[16 + 2 * tile] = 32, theirs.bytes[48 + tile] = 5;
  asm volatile("ldtilecfg (%0)" : : "r"(&theirs) : "memory");
  Numbers numbers;
  const Size s{33, 40, 70};
  const Factors f{halves(numbers.some(s.rows * s.depth)), halves(numbers.some(s.depth * s.columns)),
                  std::vector<float>(static_cast<std::size_t>(s.rows * s.columns))};
  use_pair_unit(PairUnit::amx);
  expect(gap(product_of(f, s, Way::from_weight, false), exact_product(f, s, false)) < 1e-5, "AMX beside another user");
  asm volatile("sttilecfg (%0)" : : "r"(&found) : "memory");
  expect(std::memcmp(&theirs, &found, sizeof found) == 0, "the tiles' configuration was not put back");
  asm volatile("tilerelease" : : : "memory");
  std::printf("AMX: another library's configuration of the tiles is put back\n");
}

// --- whole plans -----------------------------------------------------------------------------------------------------

constexpr std::int64_t steps = 3;

// Memory of all parameters, as LibTorch's tensors would hold it.
class Model {
 public:
  explicit Model(const PlanShape& shape) {
    const std::int64_t C = shape.width;
    const auto layer = [&](std::int64_t out, std::int64_t in) {
      return PlanLayer{parameter(out * in, 0.3F, 0), parameter(out, 0.1F, 0)};
    };
    const auto norm = [&] { return PlanLayer{parameter(C, 0.1F, 1), parameter(C, 0.1F, 0)}; };
    parameters.tokens = parameter(shape.padded_vocab * C, 0.5F, 0);
    parameters.positions = parameter(shape.length * C, 0.5F, 0);
    parameters.head = shape.tied_head ? parameters.tokens : parameter(shape.padded_vocab * C, 0.3F, 0);
    for (std::int64_t i = 0; i < shape.layers; ++i) {
      parameters.blocks.push_back({.ln_1 = norm(),
                                   .attention = layer(3 * C, C),
                                   .attention_out = layer(C, C),
                                   .ln_2 = norm(),
                                   .fc = layer(4 * C, C),
                                   .fc_out = layer(C, 4 * C)});
    }
    parameters.ln_f = norm();
  }

  PlanParameters parameters;
  std::vector<const PlanParameter*> all() const {
    std::vector<const PlanParameter*> found;
    for (const auto& each : each_) found.push_back(&each->view);
    return found;
  }

 private:
  struct Memory {
    std::vector<float> weight, gradient, average, squared_average;
    PlanParameter view;
  };
  PlanParameter parameter(std::int64_t elements, float scale, float middle) {
    auto memory = std::make_unique<Memory>();
    memory->weight = numbers_.some(elements, scale);
    for (float& x : memory->weight) x += middle;
    for (auto* zeros : {&memory->gradient, &memory->average, &memory->squared_average})
      zeros->resize(static_cast<std::size_t>(elements));
    memory->view = {.weight = memory->weight.data(),
                    .gradient = memory->gradient.data(),
                    .average = memory->average.data(),
                    .squared_average = memory->squared_average.data(),
                    .elements = elements,
                    .weight_decay = 0.1};
    each_.push_back(std::move(memory));
    return each_.back()->view;
  }

  Numbers numbers_;
  std::vector<std::unique_ptr<Memory>> each_;
};

struct Trained {
  std::array<double, steps> losses;
  std::vector<std::vector<float>> gradients;  // of each parameter, in the first step
  std::vector<float> weights;                 // after the last one
};

template <class T>
Trained train(const PlanShape& shape) {
  const Model model(shape);
  const std::unique_ptr<GptPlan> plan = GptPlan::make(shape, model.parameters, PlanKernels<T>{});
  Trained trained;
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(shape.sequences * shape.length + 1));
  std::uint32_t state = 7;
  for (std::int64_t& token : tokens) token = (state = state * 1664525 + 1013904223) / 65536 % shape.vocab;
  for (std::int64_t step = 0; step < steps; ++step) {
    trained.losses[static_cast<std::size_t>(step)] = plan->forward(tokens.data(), tokens.data() + 1, 1, false);
    plan->backward(false, {});
    if (step == 0) {
      for (const PlanParameter* p : model.all()) trained.gradients.emplace_back(p->gradient, p->gradient + p->elements);
    }
    const double norm = plan->gradient_norm();
    plan->update({.lr = 1e-3,
                  .beta1 = 0.9,
                  .beta2 = 0.95,
                  .eps = 1e-8,
                  .gradient_factor = std::min(1.0, 1 / norm),
                  .step = step + 1});
  }
  for (const PlanParameter* p : model.all())
    trained.weights.insert(trained.weights.end(), p->weight, p->weight + p->elements);
  return trained;
}

// The largest difference of a parameter's gradient, as a share of its norm.
double gradient_gap(const Trained& a, const Trained& b) {
  double most = 0;
  for (std::size_t p = 0; p < a.gradients.size(); ++p) {
    double difference = 0, norm = 1e-30;
    for (std::size_t i = 0; i < a.gradients[p].size(); ++i) {
      difference += std::pow(a.gradients[p][i] - b.gradients[p][i], 2);
      norm += std::pow(b.gradients[p][i], 2);
    }
    most = std::max(most, std::sqrt(difference / norm));
  }
  return most;
}

void check_plan(const char* what, PlanShape shape, const std::vector<PairUnit>& units) {
  use_pair_unit(PairUnit::none);
  const Trained exact = train<float>(shape), widened = train<Bf16>(shape);
  std::printf("%s, float32: losses %.6f %.6f %.6f\n", what, exact.losses[0], exact.losses[1], exact.losses[2]);
  const auto compare = [&](const char* with, const Trained& trained) {
    double loss_gap = 0;
    for (std::size_t i = 0; i < steps; ++i)
      loss_gap = std::max(loss_gap, std::abs(trained.losses[i] - exact.losses[i]));
    const double found = gradient_gap(trained, exact), from_widened = gradient_gap(trained, widened);
    expect(loss_gap < 2e-2, std::string(what) + ", " + with + ": a loss differs by " + std::to_string(loss_gap));
    expect(found < 5e-2, std::string(what) + ", " + with + ": a gradient differs by " + std::to_string(found));
    std::printf("%s, bf16, %s: losses within %.1e of float32, gradients within %.1e of it and %.1e of the widened\n",
                what, with, loss_gap, found, from_widened);
  };
  compare("widened", widened);
  for (const PairUnit unit : units) {
    use_pair_unit(unit);
    shape.workers = 1;
    const Trained alone = train<Bf16>(shape);
    compare(name_of(unit), alone);
    if (alone_on_its_machine) continue;
    shape.workers = 2;
    const Trained both = train<Bf16>(shape);
    expect(alone.losses == both.losses && alone.weights == both.weights,
           std::string(what) + ", " + name_of(unit) + ": two threads have other bits than one");
  }
}

void print_cpu() {
  unsigned brand[12] = {};
  for (unsigned i = 0; i < 3; ++i) {
    unsigned* const part = brand + 4 * i;
    __get_cpuid(0x80000002 + i, part, part + 1, part + 2, part + 3);
  }
  char name[49] = {};
  std::memcpy(name, brand, 48);
  std::printf("CPU: %s; pairs are multiplied by: %s\n", name, name_of(pair_unit()));
}

int run() {
  print_cpu();
  const std::vector<PairUnit> units = units_here();
  for (const PairUnit unit : units) {
    check_products(unit);
    check_rows(unit);
  }
  if (units.back() == PairUnit::amx) check_configuration();
  check_plan("small plan",
             {.layers = 2,
              .heads = 3,
              .width = 48,
              .vocab = 65,
              .padded_vocab = 80,
              .sequences = 2,
              .length = 33,
              .tied_head = true},
             units);
  // Wider than what is packed once a step.
  check_plan("wide plan",
             {.layers = 1, .heads = 4, .width = 272, .vocab = 100, .padded_vocab = 112, .sequences = 1, .length = 70},
             {units.begin() + 2, units.end()});
  std::printf("end of the checks: %d checks, %d failed\n", checks, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace stepladder

// --alone: without other threads.
int main(int count, char** arguments) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  stepladder::alone_on_its_machine = count > 1 && std::strcmp(arguments[1], "--alone") == 0;
  return stepladder::run();
}
