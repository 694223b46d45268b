// Maps each product of the step to a cuBLASLt call and picks its algorithm by timing, once for each shape. Nothing is
// timed while a graph is captured. A shape without an algorithm falls back to LibTorch's product (Products). cuBLASLt
// is column-major: Call explains how factors are swapped.
#include "engine/trainer/device/lt_products.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

#include "engine/trainer/cache/cache_files.h"

namespace stepladder {
namespace {

constexpr std::int64_t workspace_size = 32 << 20;  // what NVIDIA recommends for Hopper
constexpr int most_algorithms = 8;
constexpr int rounds = 5, calls = 5;     // of a timing: the least of rounds of calls
constexpr double clearly_faster = 0.98;  // else the heuristic's order counts, so that noise doesn't change the bits

lt::Type type_of(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBFloat16 ? lt::bfloat16 : lt::float32;
}

const char* name_of(lt::Epilogue epilogue) {
  switch (epilogue) {
    case lt::plain:
      return "plain";
    case lt::bias:
      return "bias";
    case lt::gelu_aux_bias:
      return "gelu";
    case lt::dgelu_bias_gradient:
      return "gelu backward";
    case lt::bias_gradient_b:
      return "bias gradient";
  }
  return "";
}

// NVIDIA's header: an algorithm's 64 bytes may be stored and used again by the same version of the library. The
// checksum finds bytes that were changed, and those of another product.
std::string text_of(const lt::Algorithm& algorithm, const std::string& key) {
  std::string digits;
  for (const std::uint64_t word : algorithm.data) {
    std::array<char, 20> text{};
    std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(word));
    digits += text.data();
  }
  return digits + "-" + cache_checksum(key + " " + digits);
}

std::optional<lt::Algorithm> algorithm_of(const std::string& text, const std::string& key) {
  constexpr std::size_t digits = 16;
  lt::Algorithm algorithm{};
  if (text.size() < digits * std::size(algorithm.data)) return std::nullopt;
  for (std::size_t i = 0; i < std::size(algorithm.data); ++i) {
    const char* const first = text.data() + i * digits;
    if (std::from_chars(first, first + digits, algorithm.data[i], 16).ptr != first + digits) return std::nullopt;
  }
  if (text_of(algorithm, key) != text) return std::nullopt;
  return algorithm;
}

// In the place of an algorithm: the plain product and kernels are faster than the epilogue.
std::string apart_text(const std::string& key) {
  return "apart-" + cache_checksum(key + " apart");
}

}  // namespace

// One product as cuBLASLt sees it: matrices are column by column there, so a row-major (N, M) is an M x N with M
// elements from column to column. d = op(a) op(b), m x n, summed over k.
struct LtProducts::Call {
  lt::Transpose transpose_a, transpose_b;
  std::int64_t m, n, k;
  const at::Tensor& a;
  const at::Tensor& b;
  const at::Tensor& d;
  lt::Epilogue epilogue = lt::plain;
  at::Tensor bias = {};  // read or written, as the epilogue says
  at::Tensor aux = {};   // GELU's input, m x n
};

struct LtProducts::Plan {
  std::array<std::int64_t, 8> key{};
  lt::Api api;
  lt::Descriptor product = nullptr, a = nullptr, b = nullptr, d = nullptr;
  bool has_algorithm = false, timed = false;
  lt::Heuristic algorithm{};
  std::string choice;

  explicit Plan(const lt::Api& functions) : api(functions) {}
  ~Plan() {
    for (lt::Descriptor layout : {a, b, d})
      if (layout) api.MatrixLayoutDestroy(layout);
    if (product) api.MatmulDescDestroy(product);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  template <class Value>
  bool set(lt::Attribute attribute, const Value& value) const {
    return api.MatmulDescSetAttribute(product, attribute, &value, sizeof value) == 0;
  }
};

LtProducts::LtProducts(const DeviceKernels& kernels, lt::Library library, bool tf32, KeptChoices kept)
    : Products(kernels), library_(std::move(library)), tf32_(tf32), kept_(std::move(kept)) {}

LtProducts::~LtProducts() = default;

at::Tensor LtProducts::forward(const at::Tensor& x, const LayerTensors& layer) {
  const std::int64_t N = x.size(0), K = x.size(1), M = layer.weight.size(0);
  const at::Tensor y = at::empty({N, M}, x.options());
  Call call{lt::transposed, lt::as_is, M, N, K, layer.weight, x, y};
  if (layer.bias.defined()) {
    call.epilogue = lt::bias;
    call.bias = layer.bias;
  }
  return run(call) ? y : Products::forward(x, layer);
}

// `pre` includes the bias here.
Products::Activated LtProducts::forward_gelu(const at::Tensor& x, const LayerTensors& layer) {
  const std::int64_t N = x.size(0), K = x.size(1), M = layer.weight.size(0);
  if (layer.bias.defined()) {
    const at::Tensor after = at::empty({N, M}, x.options()), pre = at::empty({N, M}, x.options());
    const auto apart = [&] { forward_gelu_apart(x, layer); };
    if (run({lt::transposed, lt::as_is, M, N, K, layer.weight, x, after, lt::gelu_aux_bias, layer.bias, pre}, apart))
      return {pre, after};
  }
  return forward_gelu_apart(x, layer);
}

Products::Activated LtProducts::forward_gelu_apart(const at::Tensor& x, const LayerTensors& layer) {
  const at::Tensor pre = forward(x, layer);
  return {pre, kernels_.gelu(pre, {})};
}

at::Tensor LtProducts::input_gradient(const at::Tensor& d, const at::Tensor& weight) {
  const std::int64_t N = d.size(0), M = d.size(1), K = weight.size(1);
  const at::Tensor d_x = at::empty({N, K}, d.options());
  return run({lt::as_is, lt::as_is, K, N, M, weight, d, d_x}) ? d_x : Products::input_gradient(d, weight);
}

Products::GeluGradients LtProducts::gelu_gradient(const at::Tensor& d, const at::Tensor& weight, const at::Tensor& pre,
                                                  const LayerTensors& layer) {
  const std::int64_t N = d.size(0), M = d.size(1), K = weight.size(1);
  if (layer.bias.defined()) {
    const at::Tensor d_pre = at::empty({N, K}, d.options()), d_bias = at::empty({K}, d.options());
    const auto apart = [&] { gelu_gradient_apart(d, weight, pre, layer); };
    if (run({lt::as_is, lt::as_is, K, N, M, weight, d, d_pre, lt::dgelu_bias_gradient, d_bias, pre}, apart))
      return {d_pre, d_bias.to(at::kFloat)};
  }
  return gelu_gradient_apart(d, weight, pre, layer);
}

Products::GeluGradients LtProducts::gelu_gradient_apart(const at::Tensor& d, const at::Tensor& weight,
                                                        const at::Tensor& pre, const LayerTensors& layer) {
  const at::Tensor d_pre = kernels_.gelu_backward(pre, {}, input_gradient(d, weight));
  return {d_pre, layer.bias.defined() ? kernels_.bias_gradient(d_pre) : at::Tensor()};
}

Products::WeightGradients LtProducts::weight_gradient(const at::Tensor& d, const at::Tensor& x, bool wants_bias) {
  const std::int64_t N = d.size(0), M = d.size(1), K = x.size(1);
  const at::Tensor d_weight = at::empty({M, K}, d.options().dtype(at::kFloat));
  Call call{lt::as_is, lt::transposed, K, M, N, x, d, d_weight};
  if (wants_bias) {
    const at::Tensor d_bias = at::empty({M}, d_weight.options());
    call.epilogue = lt::bias_gradient_b;
    call.bias = d_bias;
    const auto apart = [&] {
      weight_gradient(d, x, false);
      kernels_.bias_gradient(d);
    };
    if (run(call, apart)) return {d_weight, d_bias};
    call.epilogue = lt::plain;
    call.bias = at::Tensor();
  }
  if (!run(call)) return Products::weight_gradient(d, x, wants_bias);
  return {d_weight, wants_bias ? kernels_.bias_gradient(d) : at::Tensor()};
}

// False if cuBLASLt has no algorithm for it or refuses it, or if `apart` is faster.
bool LtProducts::run(const Call& call, const Apart& apart) {
  Plan& plan = plan_of(call);
  if (plan.has_algorithm && !plan.timed && !library_.capturing()) choose(plan, call, apart);
  if (!plan.has_algorithm) return false;
  if (start(plan, call, plan.algorithm)) return true;
  TORCH_CHECK(!library_.capturing(), "cuBLASLt refused a product of ", call.m, " x ", call.n, " x ", call.k, " (",
              name_of(call.epilogue), ") while it was captured");
  plan.has_algorithm = false;
  return false;
}

at::Tensor LtProducts::workspace(const at::Tensor& near) {
  if (!workspace_.defined()) workspace_ = at::empty({workspace_size}, near.options().dtype(at::kByte));
  return workspace_;
}

LtProducts::Plan& LtProducts::plan_of(const Call& call) {
  const std::array<std::int64_t, 8> key{call.transpose_a, call.transpose_b, call.m,          call.n,
                                        call.k,           type_of(call.a),  type_of(call.d), call.epilogue};
  const auto known = std::ranges::find_if(plans_, [&](const auto& plan) { return plan->key == key; });
  if (known != plans_.end()) return **known;
  Plan& plan = *plans_.emplace_back(std::make_unique<Plan>(library_.api));
  plan.key = key;
  const lt::Api& api = library_.api;
  const auto layout = [&](lt::Descriptor& made, const at::Tensor& of, bool swapped, std::int64_t rows,
                          std::int64_t columns) {
    if (swapped) std::swap(rows, columns);
    return api.MatrixLayoutCreate(&made, type_of(of), static_cast<std::uint64_t>(rows),
                                  static_cast<std::uint64_t>(columns), rows) == 0;
  };
  const lt::Compute compute = tf32_ && type_of(call.a) == lt::float32 ? lt::in_tf32 : lt::in_float32;
  const bool made =
      api.MatmulDescCreate(&plan.product, compute, lt::float32) == 0 && plan.set(lt::transpose_a, call.transpose_a) &&
      plan.set(lt::transpose_b, call.transpose_b) && plan.set(lt::epilogue, call.epilogue) &&
      layout(plan.a, call.a, call.transpose_a == lt::transposed, call.m, call.k) &&
      layout(plan.b, call.b, call.transpose_b == lt::transposed, call.k, call.n) &&
      layout(plan.d, call.d, false, call.m, call.n) &&
      (!call.bias.defined() ||
       (plan.set(lt::bias_pointer, call.bias.mutable_data_ptr()) && plan.set(lt::bias_type, type_of(call.bias)))) &&
      (!call.aux.defined() || (plan.set(lt::aux_pointer, call.aux.mutable_data_ptr()) && plan.set(lt::aux_ld, call.m)));
  if (!made) return plan;
  plan.has_algorithm = offered(plan, call, std::span(&plan.algorithm, 1)) == 1 && plan.algorithm.state == 0;
  return plan;
}

// Asks the heuristic, which puts its best first. -> how many algorithms it gave.
int LtProducts::offered(const Plan& plan, const Call& call, std::span<lt::Heuristic> algorithms) {
  const lt::Api& api = library_.api;
  lt::Descriptor preference = nullptr;
  if (api.MatmulPreferenceCreate(&preference) != 0) return 0;
  const auto bytes = static_cast<std::size_t>(workspace_size);
  // Partial sums rounded to bf16 may cancel each other's digits: they stay in float32.
  const lt::ReductionSchemes schemes = type_of(call.d) == lt::bfloat16 ? lt::in_compute_type : lt::any_scheme;
  int found = 0;
  const bool asked =
      api.MatmulPreferenceSetAttribute(preference, lt::workspace_bytes, &bytes, sizeof bytes) == 0 &&
      api.MatmulPreferenceSetAttribute(preference, lt::reduction_schemes, &schemes, sizeof schemes) == 0 &&
      api.MatmulAlgoGetHeuristic(library_.handle(), plan.product, plan.a, plan.b, plan.d, plan.d, preference,
                                 static_cast<int>(algorithms.size()), algorithms.data(), &found) == 0;
  api.MatmulPreferenceDestroy(preference);
  return asked ? found : 0;
}

std::string LtProducts::key_of(const Call& call) const {
  const auto letter = [](lt::Transpose transpose) { return transpose == lt::transposed ? "T" : "N"; };
  const auto type = [](const at::Tensor& tensor) { return type_of(tensor) == lt::bfloat16 ? "bf16" : "float32"; };
  return std::to_string(call.m) + " x " + std::to_string(call.n) + " x " + std::to_string(call.k) + ", " +
         letter(call.transpose_a) + letter(call.transpose_b) + ", " + name_of(call.epilogue) + ", " +
         (tf32_ && type_of(call.a) == lt::float32 ? "TF32" : type(call.a)) + " to " + type(call.d) +
         (type_of(call.d) == lt::bfloat16 ? ", fp32 sums" : "");
}

// What was kept of an earlier run, if this library still runs it.
bool LtProducts::take(Plan& plan, const Call& call, const std::string& key) {
  const KeptChoice* const kept = kept_.find(key);
  if (!kept) return false;
  if (kept->name == apart_text(key)) {
    plan.has_algorithm = false;
  } else {
    const auto algorithm = algorithm_of(kept->name, key);
    if (!algorithm) return false;
    lt::Heuristic candidate{};
    if (library_.api.MatmulAlgoCheck(library_.handle(), plan.product, plan.a, plan.b, plan.d, plan.d, &*algorithm,
                                     &candidate) != 0)
      return false;
    candidate.algorithm = *algorithm;
    if (candidate.workspace_bytes > static_cast<std::size_t>(workspace_size) || !start(plan, call, candidate))
      return false;
    plan.algorithm = candidate;
  }
  plan.choice = key + ": " + kept->timings;
  return true;
}

double LtProducts::least_ms(const std::function<void()>& work) const {
  double least = INFINITY;
  for (int round = 0; round < rounds; ++round) {
    least = std::min(least, library_.time_ms([&] {
      for (int i = 0; i < calls; ++i) work();
    }) / calls);
  }
  return least;
}

// Times what the heuristic offers, on the call's own tensors (a product only overwrites its results), and then the
// plain product with kernels behind it, which some cards run faster than an epilogue.
void LtProducts::choose(Plan& plan, const Call& call, const Apart& apart) {
  plan.timed = true;
  // With LibTorch's GELU in the kernel's place, apart means something else.
  const std::string key = key_of(call) + (apart && !kernels_.parts().gelu ? ", LibTorch's GELU" : "");
  if (take(plan, call, key)) return;
  std::array<lt::Heuristic, most_algorithms> candidates{};
  const int found = offered(plan, call, candidates);
  double best_ms = INFINITY;
  int best = -1;
  for (int i = 0; i < found; ++i) {
    const lt::Heuristic& candidate = candidates[static_cast<std::size_t>(i)];
    if (candidate.state != 0 || !start(plan, call, candidate)) continue;  // also warms it up
    const double ms = least_ms([&] { start(plan, call, candidate); });
    if (!(ms < (best < 0 ? INFINITY : clearly_faster * best_ms))) continue;
    best_ms = ms;
    best = i;
    plan.algorithm = candidate;
  }
  plan.has_algorithm = best >= 0;
  if (best < 0) return;
  std::array<char, 80> timings{};
  std::snprintf(timings.data(), timings.size(), "%.3f ms, number %d of %d", best_ms, best + 1, found);
  std::string name = text_of(plan.algorithm.algorithm, key);
  if (apart) {
    apart();  // chooses the algorithm of its own product
    if (const double apart_ms = least_ms(apart); apart_ms < clearly_faster * best_ms) {
      plan.has_algorithm = false;
      name = apart_text(key);
      std::snprintf(timings.data(), timings.size(), "%.3f ms in kernels of their own, %.3f ms in one", apart_ms,
                    best_ms);
    }
  }
  plan.choice = key + ": " + timings.data();
  kept_.keep(key, {name, timings.data()});
  kept_.save();  // before the first step, so nothing waits for the disk while it trains
}

bool LtProducts::start(Plan& plan, const Call& call, const lt::Heuristic& algorithm) {
  if (call.bias.defined() && !plan.set(lt::bias_pointer, call.bias.mutable_data_ptr())) return false;
  if (call.aux.defined() && !plan.set(lt::aux_pointer, call.aux.mutable_data_ptr())) return false;
  constexpr float one = 1, zero = 0;
  void* const result = call.d.mutable_data_ptr();
  return library_.api.Matmul(library_.handle(), plan.product, &one, call.a.const_data_ptr(), plan.a,
                             call.b.const_data_ptr(), plan.b, &zero, result, plan.d, result, plan.d,
                             &algorithm.algorithm, workspace(call.d).mutable_data_ptr(), algorithm.workspace_bytes,
                             library_.stream()) == 0;
}

std::vector<std::string> LtProducts::choices() const {
  std::vector<std::string> all;
  for (const auto& plan : plans_)
    if (!plan->choice.empty()) all.push_back("product " + plan->choice);
  return all;
}

}  // namespace stepladder
