// How near the planned step's attention comes to the products' peak on a CPU: GFLOP/s, forward and backward, by length
// and head size. `attention_bench [--threads N] [--unit avx512|avx2|plain] [--seconds S]`; the triangle's operations
// count, not what a tile computes beyond it. The least time of all turns counts.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "engine/trainer/plan/attention_tiles.h"
#include "engine/trainer/plan/crew.h"
#include "engine/trainer/plan/pair_products.h"
#include "engine/trainer/plan/products.h"

namespace stepladder {
namespace {

double least_seconds(double budget_s, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(budget_s);
  double least = std::numeric_limits<double>::infinity();
  call();
  do {
    const auto began = Clock::now();
    call();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - began).count());
  } while (Clock::now() < end);
  return least;
}

template <class T>
std::vector<T> numbers(std::int64_t count) {
  std::vector<T> all(static_cast<std::size_t>(count));
  std::uint32_t state = 1;
  for (T& each : all) {
    state = state * 1664525 + 1013904223;
    store(each, static_cast<float>(state >> 8) / (1 << 23) - 1);
  }
  return all;
}

// GFLOP/s of the plan's own products on all threads at once, at a size that suits them.
template <class T>
double product_peak(Crew& crew, double budget_s) {
  constexpr std::int64_t rows = 240, columns = 256, depth = 256;
  struct Operands {
    std::vector<T> left = numbers<T>(rows * depth), right = numbers<T>(depth * columns);
    std::vector<float> out = numbers<float>(rows * columns);
  };
  std::vector<Operands> operands(static_cast<std::size_t>(crew.workers()));
  constexpr int repeats = 2;
  const Phase phase{.tasks = crew.workers(), .work = [&](std::int64_t task, int) {
                      Operands& o = operands[static_cast<std::size_t>(task)];
                      for (int i = 0; i < repeats; ++i) {
                        if constexpr (std::is_same_v<T, float>) {
                          multiply({.rows = rows,
                                    .columns = columns,
                                    .depth = depth,
                                    .left = o.left.data(),
                                    .left_row = depth,
                                    .out = o.out.data(),
                                    .out_row = columns},
                                   o.right.data());
                        } else {
                          multiply({.rows = rows,
                                    .columns = columns,
                                    .depth = depth,
                                    .left = o.left.data(),
                                    .left_row = depth,
                                    .out = o.out.data(),
                                    .out_row = columns},
                                   o.right.data(), PairUnit::avx512_bf16);
                        }
                      }
                    }};
  const double seconds = least_seconds(budget_s, [&] { crew.run({&phase, 1}); });
  return 2e-9 * repeats * crew.workers() * rows * columns * depth / seconds;
}

template <class T>
void measure(Crew& crew, std::int64_t length, std::int64_t width, double budget_s, double peak) {
  // Calls are short, so that on a busy machine some of them run undisturbed.
  const std::int64_t all_heads = 4, heads = std::clamp<std::int64_t>(256 / length, 1, all_heads);
  const std::int64_t C = all_heads * width;
  const HeadShape head{length, width, 3 * C, C};
  // A sequence for each task, with its heads side by side, as in the model.
  struct Sequence {
    std::vector<T> qkv, out, d_out, d_qkv;
    std::vector<float> log_sums;
  };
  const std::int64_t tasks = crew.workers();
  std::vector<Sequence> sequences(static_cast<std::size_t>(tasks));
  for (Sequence& s : sequences) {
    s = {numbers<T>(length * 3 * C), numbers<T>(length * C), numbers<T>(length * C), numbers<T>(length * 3 * C),
         std::vector<float>(static_cast<std::size_t>(all_heads * length))};
  }
  std::vector<std::vector<float>> scratch(static_cast<std::size_t>(crew.workers()));
  for (auto& memory : scratch) memory.resize(static_cast<std::size_t>(attention_scratch(head)));
  const auto phase = [&](const auto& work) {
    return Phase{.tasks = tasks * heads, .work = [&, work](std::int64_t task, int worker) {
                   work(sequences[static_cast<std::size_t>(task / heads)], task % heads,
                        scratch[static_cast<std::size_t>(worker)].data());
                 }};
  };
  const Phase forward = phase([&](Sequence& s, std::int64_t n, float* memory) {
    const T* const q = s.qkv.data() + n * width;
    attention_forward(head, q, q + C, q + 2 * C, s.out.data() + n * width, s.log_sums.data() + n * length, memory);
  });
  const Phase backward = phase([&](Sequence& s, std::int64_t n, float* memory) {
    const T* const q = s.qkv.data() + n * width;
    T* const d_q = s.d_qkv.data() + n * width;
    attention_backward(head,
                       HeadGradients<T>{q, q + C, q + 2 * C, s.out.data() + n * width, s.log_sums.data() + n * length,
                                        s.d_out.data() + n * width, d_q, d_q + C, d_q + 2 * C},
                       memory);
  });
  const double forward_s = least_seconds(budget_s, [&] { crew.run({&forward, 1}); });
  const double backward_s = least_seconds(budget_s, [&] { crew.run({&backward, 1}); });
  const double product = 1e-9 * static_cast<double>(tasks * heads * length * length * width);  // of the triangle
  const auto rate = [&](double products, double seconds) { return products * product / seconds; };
  std::printf("%5lld %5lld   %8.1f %5.0f %%   %8.1f %5.0f %%   %5.0f %%\n", static_cast<long long>(length),
              static_cast<long long>(width), rate(2, forward_s), 100 * rate(2, forward_s) / peak, rate(5, backward_s),
              100 * rate(5, backward_s) / peak, 100 * rate(7, forward_s + backward_s) / peak);
}

template <class T>
void measure_all(Crew& crew, const char* type, double budget_s, double peak) {
  std::printf(
      "%s; peak of the plan's products: %.1f GFLOP/s\n    T     d   forward GFLOP/s   backward GFLOP/s   both\n", type,
      peak);
  for (const std::int64_t length : {64, 256, 1024}) {
    for (const std::int64_t width : {32, 64, 128}) measure<T>(crew, length, width, budget_s, peak);
  }
}

int run(const std::vector<std::string>& arguments) {
  int threads = 2;
  double budget_s = 0.3;
  for (std::size_t i = 0; i + 1 < arguments.size(); i += 2) {
    const std::string &option = arguments[i], &value = arguments[i + 1];
    if (option == "--threads") threads = std::max(1, std::atoi(value.c_str()));
    if (option == "--seconds") budget_s = std::atof(value.c_str());
    if (option == "--unit" && value == "avx2") use_vector_unit(VectorUnit::avx2);
    if (option == "--unit" && value == "plain") use_vector_unit(VectorUnit::plain);
  }
  Crew crew(threads);
  measure_all<float>(crew, "float32", budget_s, product_peak<float>(crew, 1));
  if (vector_unit() == VectorUnit::avx512 && pair_unit() != PairUnit::none)
    measure_all<Bf16>(crew, "bf16", budget_s, product_peak<Bf16>(crew, 1));
  return 0;
}

}  // namespace
}  // namespace stepladder

int main(int count, char** arguments) {
  return stepladder::run({arguments + 1, arguments + count});
}
