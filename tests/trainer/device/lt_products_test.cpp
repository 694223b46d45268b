// Products by cuBLASLt against LibTorch's, with a stand-in that computes what NVIDIA documents: matrices column by
// column, epilogues on the result, the bias gradients of BGRADB summed over k.
#include "engine/trainer/device/lt_products.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <vector>

#include "tests/trainer/device/kernels_on_cpu.h"

namespace stepladder {
namespace {

struct FakeLt {
  struct Object {
    std::map<int, std::int64_t> attributes;  // of a product
    int type = 0;                            // of a layout
    std::int64_t rows = 0, columns = 0;
  };
  std::set<std::uint32_t> refused;           // epilogues for which there is no algorithm
  std::set<std::uint32_t> refused_at_start;  // epilogues whose algorithms cannot be started
  std::set<std::uint32_t> slow;              // epilogues that take three times as long
  std::uint32_t last_epilogue = 0;
  bool third_is_near = false;       // the third algorithm is 1 % faster than the second
  std::vector<std::uint64_t> used;  // the algorithm of each product
  int heuristics = 0, objects = 0, timings = 0;
  std::set<std::uint64_t> unknown;     // algorithms that the library doesn't have
  std::size_t checked_workspace = 64;  // what a check says that an algorithm needs
};
FakeLt fake;

FakeLt::Object& object(lt::Descriptor descriptor) {
  return *static_cast<FakeLt::Object*>(descriptor);
}
lt::Status create(lt::Descriptor* made) {
  ++fake.objects;
  *made = new FakeLt::Object;
  return 0;
}
lt::Status destroy(lt::Descriptor descriptor) {
  --fake.objects;
  delete static_cast<FakeLt::Object*>(descriptor);
  return 0;
}
lt::Status set_attribute(lt::Descriptor descriptor, int attribute, const void* value, std::size_t bytes) {
  std::int64_t number = 0;
  std::memcpy(&number, value, bytes);
  object(descriptor).attributes[attribute] = number;
  return 0;
}

std::uint32_t epilogue_of(lt::Descriptor product) {
  return static_cast<std::uint32_t>(object(product).attributes.at(lt::epilogue));
}

lt::Status heuristic(lt::Handle, lt::Descriptor product, lt::Descriptor, lt::Descriptor, lt::Descriptor,
                     lt::Descriptor d, lt::Descriptor preference, int requested, lt::Heuristic* results,
                     int* returned) {
  ++fake.heuristics;
  // Partial sums in place or in the results' type round to bf16.
  const std::int64_t schemes = object(preference).attributes.at(lt::reduction_schemes);
  EXPECT_EQ(schemes, object(d).type == lt::bfloat16 ? 2 : 7);
  *returned = fake.refused.contains(epilogue_of(product)) ? 0 : std::min(requested, 3);
  for (int i = 0; i < *returned; ++i)
    results[i] = {.algorithm = {{static_cast<std::uint64_t>(i)}}, .workspace_bytes = 64};
  return *returned == 0 ? 15 : 0;  // CUBLAS_STATUS_NOT_SUPPORTED
}

lt::Status check(lt::Handle, lt::Descriptor, lt::Descriptor, lt::Descriptor, lt::Descriptor, lt::Descriptor,
                 const lt::Algorithm* algorithm, lt::Heuristic* result) {
  if (fake.unknown.contains(algorithm->data[0])) return 15;
  result->workspace_bytes = fake.checked_workspace;
  return 0;
}

// The matrix of a layout, rows x columns, as a view of its memory.
at::Tensor matrix(const void* memory, lt::Descriptor layout) {
  const FakeLt::Object& own = object(layout);
  return at::from_blob(const_cast<void*>(memory), {own.columns, own.rows},
                       own.type == lt::bfloat16 ? at::kBFloat16 : at::kFloat)
      .t();
}

lt::Status multiply(lt::Handle, lt::Descriptor product, const void*, const void* a, lt::Descriptor a_layout,
                    const void* b, lt::Descriptor b_layout, const void*, const void*, lt::Descriptor, void* d,
                    lt::Descriptor d_layout, const lt::Algorithm* algorithm, void*, std::size_t, void*) {
  if (fake.refused_at_start.contains(epilogue_of(product))) return 15;
  fake.used.push_back(algorithm->data[0]);
  fake.last_epilogue = epilogue_of(product);
  const auto& attributes = object(product).attributes;
  const auto factor = [&](const void* memory, lt::Descriptor layout, int transpose) {
    const at::Tensor whole = matrix(memory, layout).to(at::kFloat);
    return attributes.at(transpose) == lt::transposed ? whole.t() : whole;
  };
  const at::Tensor left = factor(a, a_layout, lt::transpose_a), right = factor(b, b_layout, lt::transpose_b);
  at::Tensor out = matrix(d, d_layout), value = at::mm(left, right);  // m x n
  const auto vector = [&](std::int64_t size) {
    EXPECT_EQ(attributes.at(lt::bias_type), object(d_layout).type);
    return at::from_blob(reinterpret_cast<void*>(attributes.at(lt::bias_pointer)), {size}, out.options());
  };
  const auto aux = [&] {
    EXPECT_EQ(attributes.at(lt::aux_ld) % 8, 0);
    return at::from_blob(reinterpret_cast<void*>(attributes.at(lt::aux_pointer)),
                         {out.size(1), attributes.at(lt::aux_ld)}, out.options())
        .t();
  };
  switch (epilogue_of(product)) {
    case lt::bias:
      value = value + vector(out.size(0)).to(at::kFloat).unsqueeze(1);
      break;
    case lt::gelu_aux_bias:
      value = value + vector(out.size(0)).to(at::kFloat).unsqueeze(1);
      aux().copy_(value);
      value = at::gelu(value, "tanh");
      break;
    case lt::dgelu_bias_gradient:
      value = at::gelu_backward(value, aux().to(at::kFloat), "tanh");
      vector(out.size(0)).copy_(value.sum(1));
      break;
    case lt::bias_gradient_b:
      vector(out.size(1)).copy_(right.sum(0));
      break;
    default:
      break;
  }
  out.copy_(value);
  return 0;
}

bool fake_is_capturing = false;

lt::Library library() {
  fake = {};
  fake_is_capturing = false;
  return {.api = {.MatmulDescCreate = [](lt::Descriptor* made, int, int) { return create(made); },
                  .MatmulDescSetAttribute = set_attribute,
                  .MatmulDescDestroy = destroy,
                  .MatrixLayoutCreate =
                      [](lt::Descriptor* made, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t ld) {
                        EXPECT_EQ(ld, static_cast<std::int64_t>(rows));
                        create(made);
                        object(*made).type = type;
                        object(*made).rows = static_cast<std::int64_t>(rows);
                        object(*made).columns = static_cast<std::int64_t>(columns);
                        return 0;
                      },
                  .MatrixLayoutDestroy = destroy,
                  .MatmulPreferenceCreate = create,
                  .MatmulPreferenceSetAttribute = set_attribute,
                  .MatmulPreferenceDestroy = destroy,
                  .MatmulAlgoGetHeuristic = heuristic,
                  .MatmulAlgoCheck = check,
                  .Matmul = multiply},
          .machine = "card, cuBLASLt 1",
          .handle = [] { return lt::Handle{}; },
          .stream = [] { return static_cast<void*>(nullptr); },
          .capturing = [] { return fake_is_capturing; },
          // The second of the three is the fastest.
          .time_ms =
              [](const std::function<void()>& work) {
                ++fake.timings;
                work();
                const double ms = fake.used.back() == 1 ? 1 : fake.used.back() == 2 && fake.third_is_near ? 0.99 : 2;
                return fake.slow.contains(fake.last_epilogue) ? 3 * ms : ms;
              }};
}

struct Given {
  std::int64_t N = 24, K = 16, M = 40;
  at::Tensor x, d, d_wide, weight, narrowing, bias, float_bias;

  explicit Given(at::ScalarType type) {
    torch::manual_seed(2);
    x = at::randn({N, K}).to(type);
    d = at::randn({N, M}).to(type);
    d_wide = at::randn({N, K}).to(type);
    weight = at::randn({M, K}).to(type);
    narrowing = at::randn({K, M}).to(type);
    float_bias = at::randn({M});
    bias = float_bias.to(type);
  }
  LayerTensors layer() const { return {.weight = weight, .bias = bias, .float_bias = bias.to(at::kFloat)}; }
};

void expect_near(const at::Tensor& found, const at::Tensor& wanted, const char* what) {
  const double tolerance = found.scalar_type() == at::kBFloat16 ? 0.1 : 2e-2;
  EXPECT_TRUE(at::allclose(found.to(at::kFloat), wanted.to(at::kFloat), 2e-2, tolerance)) << what;
}

void expect_same_products(Products& found, Products& plain, const Given& given) {
  expect_near(found.forward(given.x, given.layer()), plain.forward(given.x, given.layer()), "forward");
  expect_near(found.forward(given.x, {.weight = given.weight}), plain.forward(given.x, {.weight = given.weight}),
              "forward without a bias");
  const auto hidden = found.forward_gelu(given.x, given.layer()), wanted = plain.forward_gelu(given.x, given.layer());
  expect_near(hidden.after, wanted.after, "gelu");
  const auto d = found.gelu_gradient(given.d_wide, given.narrowing, hidden.pre, given.layer());
  const auto d_wanted = plain.gelu_gradient(given.d_wide, given.narrowing, wanted.pre, given.layer());
  expect_near(d.pre, d_wanted.pre, "gelu backward");
  expect_near(d.bias, d_wanted.bias, "gelu backward's bias");
  EXPECT_EQ(d.bias.scalar_type(), at::kFloat);
  expect_near(found.input_gradient(given.d, given.weight), plain.input_gradient(given.d, given.weight),
              "input gradient");
  for (const bool wants_bias : {false, true}) {
    const auto own = found.weight_gradient(given.d, given.x, wants_bias);
    const auto theirs = plain.weight_gradient(given.d, given.x, wants_bias);
    EXPECT_EQ(own.weight.scalar_type(), at::kFloat);
    expect_near(own.weight, theirs.weight, "weight gradient");
    EXPECT_EQ(own.bias.defined(), wants_bias);
    if (wants_bias) expect_near(own.bias, theirs.bias, "bias gradient");
  }
}

TEST(LtProducts, ComputeWhatLibTorchsDo) {
  for (const bool half : {false, true}) {
    KernelsOnCpu launcher(half);
    const DeviceKernels kernels(launcher, half);
    Products plain(kernels);
    const Given given(kernels.element());
    LtProducts whole(kernels, library(), false, KeptChoices({}));
    expect_same_products(whole, plain, given);  // chooses algorithms
    launcher.launches.clear();
    expect_same_products(whole, plain, given);
    EXPECT_EQ(launcher.launches["bias_gradient"], 2);  // of the plain products only
    // Each epilogue that a card or a shape lacks is replaced by a product and a kernel.
    for (const lt::Epilogue missing :
         {lt::bias, lt::gelu_aux_bias, lt::dgelu_bias_gradient, lt::bias_gradient_b, lt::plain}) {
      LtProducts without(kernels, library(), false, KeptChoices({}));
      fake.refused = {missing};
      expect_same_products(without, plain, given);
      LtProducts not_started(kernels, library(), false, KeptChoices({}));
      fake.refused_at_start = {missing};
      expect_same_products(not_started, plain, given);
      LtProducts slow(kernels, library(), false, KeptChoices({}));
      fake.slow = {missing};
      expect_same_products(slow, plain, given);
    }
    LtProducts nothing(kernels, library(), false, KeptChoices({}));
    fake.refused = {lt::bias, lt::gelu_aux_bias, lt::dgelu_bias_gradient, lt::bias_gradient_b, lt::plain};
    expect_same_products(nothing, plain, given);
    EXPECT_TRUE(fake.used.empty());
  }
}

TEST(LtProducts, TakeTheFastestAlgorithmOfEachShape) {
  KernelsOnCpu launcher(false);
  const DeviceKernels kernels(launcher, false);
  const Given given(at::kFloat);
  {
    LtProducts products(kernels, library(), false, KeptChoices({}));
    fake_is_capturing = true;  // nothing may wait, so the heuristic's first is taken for now
    products.forward(given.x, given.layer());
    EXPECT_EQ(fake.used, std::vector<std::uint64_t>{0});
    EXPECT_TRUE(products.choices().empty());
    fake_is_capturing = false;
    products.forward(given.x, given.layer());
    EXPECT_EQ(fake.used.back(), 1u);
    const std::size_t so_far = fake.used.size();
    const int heuristics = fake.heuristics;
    products.forward(given.x, given.layer());  // known by now
    EXPECT_EQ(fake.used.size(), so_far + 1);
    EXPECT_EQ(fake.used.back(), 1u);
    EXPECT_EQ(fake.heuristics, heuristics);
    EXPECT_EQ(products.choices(),
              std::vector<std::string>{"product 40 x 24 x 16, TN, bias, float32 to float32: 0.200 ms, number 2 of 3"});
  }
  EXPECT_EQ(fake.objects, 0);  // all descriptors are destroyed
}

// The second time a shape is met, by another run on the same card, nothing is timed.
TEST(LtProducts, KeepTheFastestAlgorithmInAFile) {
  namespace fs = std::filesystem;
  const fs::path file = fs::path(testing::TempDir()) / ("lt_choices_" + std::to_string(::getpid()) + ".tsv");
  fs::remove(file);
  KernelsOnCpu launcher(false);
  const DeviceKernels kernels(launcher, false);
  const Given given(at::kFloat);
  std::vector<std::string> first_choices;
  // -> how many algorithms were timed; the last one that ran is the second of the heuristic's each time.
  const auto timed = [&](const std::function<void()>& change = {}) {
    LtProducts products(kernels, library(), false, KeptChoices(file));
    if (change) change();
    const at::Tensor found = products.forward(given.x, given.layer());
    products.input_gradient(given.d, given.weight);
    EXPECT_TRUE(at::allclose(found, Products(kernels).forward(given.x, given.layer()), 1e-4, 1e-4));
    if (first_choices.empty()) first_choices = products.choices();
    EXPECT_EQ(products.choices(), first_choices);
    return fake.timings;
  };
  const auto content = [&] {
    std::ifstream stream(file);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  const int all = 2 * 3 * 5;
  EXPECT_EQ(timed(), all);
  EXPECT_EQ(timed(), 0);
  const std::string text = content();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_EQ(timed([] { fake.unknown = {1}; }), all) << "the library doesn't run it any more";
  EXPECT_EQ(timed([] { fake.checked_workspace = 33 << 20; }), all) << "it needs more memory than there is";
  const auto timed_after = [&](std::string changed) {
    std::ofstream(file) << changed;
    return timed();
  };
  const std::size_t one = text.find('\t'), two = text.find('\t', one + 1);
  std::string flipped = text, other_product = text, half = text;
  flipped[one + 16] = '7';  // another algorithm's number
  half.erase(two - 1, 1);
  const std::size_t second = text.find('\t', text.find('\n', two)) + 1;
  other_product.replace(one + 1, two - one - 1, text.substr(second, text.find('\t', second) - second));
  EXPECT_EQ(timed_after(text), 0);
  EXPECT_EQ(timed_after(flipped), all / 2);
  EXPECT_EQ(timed_after(half), all / 2);
  EXPECT_EQ(timed_after(other_product), all / 2);
  EXPECT_EQ(timed_after("another program's file\n"), all);
  EXPECT_EQ(content(), text) << "each was mended";
  fs::remove(file);
}

// An epilogue that a card computes more slowly than a kernel behind the plain product, and that this was kept.
TEST(LtProducts, DoWithoutASlowEpilogue) {
  namespace fs = std::filesystem;
  const fs::path file = fs::path(testing::TempDir()) / ("lt_apart_" + std::to_string(::getpid()) + ".tsv");
  fs::remove(file);
  KernelsOnCpu launcher(true);
  const DeviceKernels kernels(launcher, true);
  const Given given(at::kBFloat16);
  const at::Tensor pre = at::randn({given.N, given.M}).to(at::kBFloat16);
  for (const int timings : {(3 + 1 + 3) * 5, 0}) {  // both products' algorithms, and the kernels beside the epilogue
    LtProducts products(kernels, library(), false, KeptChoices(file));
    fake.slow = {lt::dgelu_bias_gradient};
    products.gelu_gradient(given.d_wide, given.narrowing, pre, given.layer());
    EXPECT_EQ(fake.timings, timings);
    launcher.launches.clear();
    products.gelu_gradient(given.d_wide, given.narrowing, pre, given.layer());
    EXPECT_EQ(fake.last_epilogue, lt::plain);
    EXPECT_EQ(launcher.launches["gelu_backward"], 1);
    EXPECT_EQ(products.choices().front(),
              "product 40 x 24 x 16, NN, gelu backward, bf16 to bf16, fp32 sums: 0.200 ms in kernels of their own, "
              "0.600 ms in "
              "one");
  }
  fs::remove(file);
}

// Other bits from one file of choices to the next must be worth it.
TEST(LtProducts, KeepTheHeuristicsOrderBetweenNearTimes) {
  KernelsOnCpu launcher(false);
  const DeviceKernels kernels(launcher, false);
  const Given given(at::kFloat);
  LtProducts products(kernels, library(), false, KeptChoices({}));
  fake.third_is_near = true;
  products.forward(given.x, given.layer());
  EXPECT_EQ(fake.used.back(), 1u);
}

}  // namespace
}  // namespace stepladder
