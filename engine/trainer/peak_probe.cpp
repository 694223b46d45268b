// Measures products and memory bandwidth for `doctor --probe`: the size is found by the fastest samples, the figure is
// their median at that size. Samples below least_sample_ms would time the launch; a low cpu_share means that other
// programs disturbed it.
#include "engine/trainer/peak_probe.h"

#include <torch/torch.h>

#include <algorithm>
#include <ctime>
#include <stdexcept>
#include <type_traits>

#include "engine/trainer/device_probe.h"
#include "engine/trainer/plan/crew.h"
#include "engine/trainer/plan/pair_products.h"
#include "engine/trainer/plan/products.h"
#include "engine/trainer/settings.h"
#include "engine/trainer/step_timer.h"

namespace stepladder {
namespace {

using StopRequested = std::function<bool()>;

constexpr double least_sample_ms = 1;      // shorter ones mostly measure the launch, longer ones other programs
constexpr double size_budget_ms = 250;     // to find the fastest size
constexpr double best_budget_ms = 1200;    // for the figure itself
constexpr double longest_sample_ms = 200;  // sizes that would take longer are not tried
constexpr double growth = 1.02;            // a larger size with a smaller gain counts as no gain
constexpr std::size_t least_samples = 5;
constexpr std::int64_t least_largest = 1024;  // always tried, even if smaller sizes gained little

// The wall time of the samples, and the CPU time that this process's threads got.
struct Share {
  double wall_ms = 0;
  double cpu_ms = 0;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Milliseconds of one call. Repeats `work` within a sample until it is long enough to time, and takes samples until the
// budget is spent. The timer waits for the device.
std::vector<double> sample(StepTimer& timer, double budget_ms, Share& share, const StopRequested& stop_requested,
                           const std::function<void()>& work) {
  work();  // picks kernels, fills caches
  double one_ms = 1e9;
  for (int i = 0; i < 3; ++i) {
    timer.start();
    work();
    one_ms = std::min(one_ms, timer.stop_ms());
  }
  const int repeats = std::max(1, static_cast<int>(least_sample_ms / std::max(1e-3, one_ms)));
  std::vector<double> call_ms;
  double spent_ms = 0;
  const std::clock_t cpu_started = std::clock();  // of all threads
  while (spent_ms < budget_ms || call_ms.size() < least_samples) {
    if (stop_requested()) throw std::runtime_error("stopped before the probe was done");
    timer.start();
    for (int i = 0; i < repeats; ++i) work();
    const double ms = timer.stop_ms();
    spent_ms += ms;
    call_ms.push_back(ms / repeats);
  }
  share.wall_ms += spent_ms;
  share.cpu_ms += 1e3 * static_cast<double>(std::clock() - cpu_started) / CLOCKS_PER_SEC;
  return call_ms;
}

struct Matrices {
  at::Tensor left, right, product;
};

Matrices matrices(std::int64_t size, at::TensorOptions options) {
  return {at::randn({size, size}, options), at::randn({size, size}, options), at::empty({size, size}, options)};
}

// A product of n x n matrices is 2 n^3 operations: n multiplications and as many additions for each of n^2 results.
double tflops_of(std::int64_t size, double ms) {
  const auto n = static_cast<double>(size);
  return 2 * n * n * n / (ms * 1e9);
}

double fastest(const std::vector<double>& values) {
  return *std::ranges::min_element(values);
}

// Doubles the matrices until two sizes in a row gain nothing, or they become too large or too slow; then
// takes the figure at the best size. Sizes are compared by their fastest samples, which other programs disturb least.
ProductRate product_rate(const char* precision, at::TensorOptions options, double memory_bytes, Share& share,
                         const StopRequested& stop_requested) {
  StepTimer timer(options.device());
  const auto sample_size = [&](std::int64_t size, double budget_ms) {
    const Matrices m = matrices(size, options);
    at::Tensor product = m.product;
    return sample(timer, budget_ms, share, stop_requested, [&] { at::mm_out(product, m.left, m.right); });
  };
  ProductRate best{.precision = precision};
  double sample_ms = 0;
  int no_gain = 0;
  for (std::int64_t size = 256; size <= least_largest || no_gain < 2; size *= 2) {
    const double bytes = 3.0 * static_cast<double>(size * size) * static_cast<double>(options.dtype().itemsize());
    if (bytes > memory_bytes / 4 || 8 * sample_ms > longest_sample_ms) break;
    sample_ms = fastest(sample_size(size, size_budget_ms));
    const double tflops = tflops_of(size, sample_ms);
    no_gain = tflops > growth * best.tflops ? 0 : no_gain + 1;
    if (tflops > best.tflops) {
      best.tflops = tflops;
      best.size = size;
    }
  }
  const std::vector<double> call_ms = sample_size(best.size, best_budget_ms);
  best.tflops = tflops_of(best.size, median(call_ms));
  best.fastest_tflops = tflops_of(best.size, fastest(call_ms));
  best.samples = static_cast<int>(call_ms.size());
  return best;
}

// The same by the planned step's own products (plan/products.h, plan/pair_products.h) on all threads, with the right
// factor packed before: a library may be far below a CPU's peak. T is float or Bf16.
template <class T>
ProductRate own_product_rate(const char* precision, Share& share, const StopRequested& stop_requested) {
  constexpr std::int64_t size = 1024, rows = 64;  // of a task
  const at::Tensor numbers = at::randn({size, size}), panels = at::empty({2 * size * size});
  const at::Tensor left = numbers.to(std::is_same_v<T, float> ? at::kFloat : at::kBFloat16);
  const at::Tensor product = at::empty({size, size});
  const T* const from = static_cast<const T*>(left.const_data_ptr());
  float* const out = product.mutable_data_ptr<float>();
  T* const packed = static_cast<T*>(panels.mutable_data_ptr());
  if constexpr (std::is_same_v<T, float>) {
    pack_panels(from, size, size, size, packed);
  } else {
    pack_pairs(from, size, size, size, packed);
  }
  Crew crew(default_threads());
  const Phase phase{.tasks = size / rows, .work = [&](std::int64_t task, int) {
                      std::conditional_t<std::is_same_v<T, float>, Product, PairProduct> part;
                      part.rows = rows;
                      part.columns = part.depth = part.left_row = part.out_row = size;
                      part.left = from + task * rows * size;
                      part.out = out + task * rows * size;
                      multiply(part, packed);
                    }};
  StepTimer timer(at::kCPU);
  const std::vector<double> call_ms = sample(timer, best_budget_ms, share, stop_requested, [&] {
    crew.run({&phase, 1});
  });
  return {.precision = precision,
          .tflops = tflops_of(size, median(call_ms)),
          .fastest_tflops = tflops_of(size, fastest(call_ms)),
          .size = size,
          .samples = static_cast<int>(call_ms.size())};
}

// a = b + s c over tensors that no cache holds: the triad of McCalpin's STREAM (1995), which counts two reads and one
// write a value.
void measure_bandwidth(PeakProbe& peak, at::TensorOptions options, Share& share, const StopRequested& stop_requested) {
  const auto tensor_bytes = static_cast<std::int64_t>(std::min(peak.device == "cpu" ? 256e6 : 1e9,  //
                                                               peak.memory_bytes / 16));
  const std::int64_t values = tensor_bytes / static_cast<std::int64_t>(options.dtype().itemsize());
  const at::Tensor b = at::ones({values}, options), c = at::ones({values}, options);
  at::Tensor a = at::empty({values}, options);
  StepTimer timer(options.device());
  const auto call_ms = sample(timer, best_budget_ms, share, stop_requested, [&] { at::add_out(a, b, c, 3); });
  peak.bandwidth_bytes = 3 * static_cast<std::int64_t>(a.nbytes());
  peak.bandwidth_gb_s = static_cast<double>(peak.bandwidth_bytes) / (median(call_ms) * 1e6);
}

PeakProbe measured(const StopRequested& stop_requested) {
  const DeviceReport& report = device_report();
  const at::InferenceMode no_gradients;
  PeakProbe peak{.device = report.resolve("auto")};
  peak.hardware = report.hardware(peak.device);
  const bool cuda = peak.device == "cuda";
  peak.memory_bytes = static_cast<double>(cuda ? report.gpus.front().memory_bytes : report.memory_bytes);
  const bool since_ampere = cuda && report.older_than_ampere().empty();
  if (peak.device == "cpu") peak.threads = default_threads();

  Share share;
  const auto options = at::TensorOptions().device(at::Device(peak.device));
  const auto measure = [&](const char* precision, at::ScalarType dtype, MatmulPrecision matmul) {
    const RunSettings settings(Recipe{.threads = default_threads(), .matmul = matmul});
    peak.rates.push_back(product_rate(precision, options.dtype(dtype), peak.memory_bytes, share, stop_requested));
  };
  const auto take_faster = [&](const ProductRate& own) {
    if (own.fastest_tflops > peak.rates.back().fastest_tflops) peak.rates.back() = own;
  };
  measure("fp32", at::kFloat, MatmulPrecision::fp32);
  if (peak.device == "cpu") take_faster(own_product_rate<float>("fp32", share, stop_requested));
  if (since_ampere) measure("tf32", at::kFloat, MatmulPrecision::tf32);
  if (!cuda || since_ampere) measure("bf16", at::kBFloat16, MatmulPrecision::fp32);
  if (peak.device == "cpu" && pair_unit() != PairUnit::none)
    take_faster(own_product_rate<Bf16>("bf16", share, stop_requested));
  if (cuda) measure("fp16", at::kHalf, MatmulPrecision::fp32);
  measure_bandwidth(peak, options.dtype(at::kFloat), share, stop_requested);

  if (peak.threads > 0) peak.cpu_share = std::min(1.0, share.cpu_ms / (share.wall_ms * peak.threads));
  return peak;
}

}  // namespace

PeakProbe measure_peak(const StopRequested& stop_requested) {
  try {
    return measured(stop_requested);
  } catch (const c10::Error& error) {
    throw std::runtime_error(error.what_without_backtrace());
  }
}

}  // namespace stepladder
