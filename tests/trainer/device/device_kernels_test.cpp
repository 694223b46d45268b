// The kernels against LibTorch's own operations: on the CPU through the shim, and on a GPU where there is one.
#include "engine/trainer/device/device_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/trainer/cuda/cuda_parts.h"
#include "engine/trainer/cuda_library.h"
#include "engine/trainer/device/kernel_module.h"
#include "engine/trainer/device_probe.h"
#include "tests/trainer/device/kernels_on_cpu.h"

namespace stepladder {
namespace {

constexpr DeviceParts none{
    .products = false, .add_norm = false, .gelu = false, .classifier = false, .embedding = false, .adamw = false};

// Where kernels run, and what they are compared with.
struct Way {
  DeviceKernels kernels, plain;
  bool half;
  at::Device device;
  std::string name;
  bool brief = false;  // few rows are enough

  Way(KernelLauncher& launcher, bool is_half, at::Device where, std::string called)
      : kernels(launcher, is_half),
        plain(launcher, is_half, none),
        half(is_half),
        device(where),
        name(std::move(called)) {
    name += half ? " bf16" : " fp32";
    torch::manual_seed(3);
  }
  at::Tensor random(at::IntArrayRef shape) const { return at::randn(shape).to(device); }
  at::Tensor elements(at::IntArrayRef shape, double scale = 1) const {
    return (at::randn(shape) * scale).to(device, kernels.element());
  }
  at::Tensor tokens(std::int64_t below, at::IntArrayRef shape) const {
    return at::randint(below, shape, at::kLong).to(device);
  }
  // A value that both sides compute in float32 and round once differs by a rounding at most.
  double tolerance() const { return half ? 1.0 / 128 : 2e-5; }
};

void expect_close(const at::Tensor& found, const at::Tensor& wanted, double relative, const std::string& what) {
  ASSERT_EQ(found.sizes(), wanted.sizes()) << what;
  const at::Tensor a = found.to(at::kCPU, at::kDouble), b = wanted.to(at::kCPU, at::kDouble);
  const double scale = std::max(1e-6, b.abs().mean().item<double>());
  EXPECT_TRUE(at::allclose(a, b, relative, relative * scale, /*equal_nan=*/true))
      << what << ": " << (a - b).abs().max().item<double>();
}

// The shim, in both types, with threads in both orders.
template <class Check>
void on_the_cpu(const Check& check) {
  for (const bool half : {false, true}) {
    for (const bool descending : {false, true}) {
      KernelsOnCpu launcher(half);
      launcher.descending = descending;
      Way way(launcher, half, at::kCPU, descending ? "descending" : "");
      way.brief = descending;
      check(way);
    }
  }
}

template <class Check>
void on_the_gpu(const Check& check) {
  const DeviceReport& report = device_report();
  if (report.gpus.empty()) GTEST_SKIP() << report.cuda_note;
  if (!cuda_library().parts) GTEST_SKIP() << cuda_library().parts_note;
  if (!nvrtc_note().empty()) GTEST_SKIP() << nvrtc_note();
  for (const bool half : {false, true}) {
    const auto launcher = cuda_library().parts->make_launcher(kernel_module(
        {.compute_major = report.gpus[0].compute_major, .compute_minor = report.gpus[0].compute_minor, .half = half},
        std::filesystem::path(testing::TempDir()) / "kernels"));
    check(Way(*launcher, half, at::Device(at::kCUDA, 0), "cuda"));
  }
}

// (N, C): lengths and widths that fill no warp, one, and many.
std::vector<std::array<std::int64_t, 2>> shapes_for(const Way& way) {
  std::vector<std::array<std::int64_t, 2>> shapes{{1, 65}, {3, 768}, {20, 128}, {2, 545}};
  if (!way.brief) shapes.insert(shapes.end(), {{63, 100}, {1000, 20}});
  if (way.device.is_cuda()) shapes.insert(shapes.end(), {{1000, 768}, {16384, 768}, {5, 4096}, {7, 1600}});
  return shapes;
}

std::string at_shape(const Way& way, std::int64_t N, std::int64_t C) {
  return way.name + " " + std::to_string(N) + " x " + std::to_string(C);
}

void check_add_norm(const Way& way) {
  for (const auto [N, C] : shapes_for(way)) {
    const at::Tensor stream = way.random({N, C}) + 3, added = way.elements({N, C});
    const at::Tensor weight = way.random({C}), bias = way.random({C}), added_bias = way.random({C});
    const at::Tensor d_normed = way.elements({N, C}), later = way.random({N, C});
    const std::string where = at_shape(way, N, C);
    for (const bool first : {false, true}) {  // a model's first norm has nothing to add
      const at::Tensor plus = first ? at::Tensor() : added, plus_bias = first ? at::Tensor() : added_bias;
      const auto found = way.kernels.add_norm(stream, plus, plus_bias, weight, bias);
      const auto wanted = way.plain.add_norm(stream, plus, plus_bias, weight, bias);
      expect_close(found.sum, wanted.sum, 1e-5, where + " sum");
      expect_close(found.normed, wanted.normed, way.tolerance(), where + " normed");
      expect_close(found.mean, wanted.mean, 1e-5, where + " mean");
      expect_close(found.factor, wanted.factor, 1e-5, where + " factor");
      const at::Tensor through = first ? at::Tensor() : later;
      const auto d = way.kernels.add_norm_backward(d_normed, through, found, weight, bias);
      const auto d_wanted = way.plain.add_norm_backward(d_normed, through, wanted, weight, bias);
      expect_close(d.sum, d_wanted.sum, 1e-4, where + " d_sum");
      expect_close(d.added, d_wanted.added, way.tolerance(), where + " d_added");
      expect_close(d.weight, d_wanted.weight, 1e-3, where + " d_weight");
      expect_close(d.bias, d_wanted.bias, 1e-3, where + " d_bias");
      expect_close(d.added_bias, d_wanted.added_bias, 1e-2, where + " d_added_bias");
    }
  }
}

void check_gelu(const Way& way) {
  for (const auto [N, C] : shapes_for(way)) {
    const at::Tensor pre = way.elements({N, C}, 3), bias = way.random({C}), d = way.elements({N, C});
    const std::string where = at_shape(way, N, C);
    for (const at::Tensor& shift : {bias, at::Tensor()}) {
      expect_close(way.kernels.gelu(pre, shift), way.plain.gelu(pre, shift), way.tolerance(), where);
      expect_close(way.kernels.gelu_backward(pre, shift, d.clone()), way.plain.gelu_backward(pre, shift, d.clone()),
                   way.half ? way.tolerance() : 2e-4, where + " backward");
    }
    expect_close(way.kernels.bias_gradient(d), way.plain.bias_gradient(d), way.half ? 5e-3 : 1e-3,
                 where + " bias gradient");
  }
  const float inf = std::numeric_limits<float>::infinity();
  const at::Tensor odd = at::tensor({-inf, -1e30F, -40.0F, 0.0F, 40.0F, 1e30F, inf, std::nanf("")}).view({1, 8});
  const at::Tensor after = way.kernels.gelu(odd.to(way.device, way.kernels.element()), {}).to(at::kCPU, at::kFloat);
  EXPECT_EQ(after[0][2].item<float>(), 0.0F);
  EXPECT_EQ(after[0][3].item<float>(), 0.0F);
  EXPECT_EQ(after[0][4].item<float>(), 40.0F);
  EXPECT_EQ(after[0][6].item<float>(), inf);
  EXPECT_TRUE(std::isnan(after[0][7].item<float>()));
}

void expect_classified(const Way& way, const at::Tensor& given, const at::Tensor& targets, std::int64_t vocab,
                       const std::string& what) {
  const auto clone = [&] { return given.to(way.device, way.kernels.element(), false, /*copy=*/true); };
  const at::Tensor wanted_tokens = targets.to(way.device);
  at::Tensor logits = clone(), wanted = clone();
  expect_close(way.kernels.classify(logits, wanted_tokens, vocab, 0.0),
               way.plain.classify(wanted, wanted_tokens, vocab, 0.0), 5e-5, what + " loss");
  EXPECT_TRUE(at::equal(at::nan_to_num(logits, 7), at::nan_to_num(clone(), 7))) << what;  // still the logits
  for (const double scale : {1.0, 1.0 / 4096}) {
    logits = clone();
    wanted = clone();
    expect_close(way.kernels.classify(logits, wanted_tokens, vocab, scale),
                 way.plain.classify(wanted, wanted_tokens, vocab, scale), 5e-5, what + " loss beside a gradient");
    expect_close(logits, wanted, way.half ? way.tolerance() : 1e-4, what + " gradient");
  }
}

void check_classifier(const Way& way) {
  struct Shape {
    std::int64_t rows, vocab, padded;
  };
  std::vector<Shape> shapes{{1, 65, 65}, {63, 65, 128}, {1, 50257, 50304}};
  if (!way.brief) shapes.insert(shapes.end(), {{1000, 65, 65}, {1, 50257, 50257}});
  if (way.device.is_cuda())
    shapes.insert(shapes.end(), {{4096, 50257, 50304}, {1000, 50257, 50257}, {3, 200'000, 200'000}});
  for (const Shape shape : shapes) {
    expect_classified(way, at::randn({shape.rows, shape.padded}) * 4, at::randint(shape.vocab, {shape.rows}, at::kLong),
                      shape.vocab, at_shape(way, shape.rows, shape.vocab));
  }
}

// What is not a number, and what is infinite, ends as it does in the plain way.
void check_odd_logits(const Way& way) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  for (const std::int64_t place : {0, 3, 64, 99}) {
    for (const float odd : {nan, inf, -inf}) {
      for (const std::int64_t target : {place, std::int64_t{17}}) {
        at::Tensor logits = at::randn({1, 128});
        logits[0][place] = odd;
        expect_classified(way, logits, at::full({1}, target, at::kLong), 100,
                          way.name + " " + std::to_string(odd) + " at " + std::to_string(place));
      }
    }
  }
  expect_classified(way, at::full({1, 128}, -inf), at::full({1}, 1, at::kLong), 100, "all -infinity");
  at::Tensor padding = at::randn({1, 128});
  padding.narrow(1, 100, 28).fill_(nan);  // padding takes no part, whatever it holds
  expect_classified(way, padding, at::full({1}, 1, at::kLong), 100, "NaN in the padding");
}

void check_embedding(const Way& way) {
  for (const auto [N, C] : shapes_for(way)) {
    const at::Tensor table = way.random({67, C}), positions = way.random({N, C}), d = way.random({N, C});
    for (const std::int64_t vocab : {1, 3, 65}) {  // one token in all rows, few, most only once
      const at::Tensor tokens = way.tokens(vocab, {N});
      EXPECT_TRUE(
          at::equal(way.kernels.embed(table, positions, tokens, N), way.plain.embed(table, positions, tokens, N)));
      expect_close(way.kernels.embed_backward(d, tokens, 67), way.plain.embed_backward(d, tokens, 67), 1e-3,
                   at_shape(way, N, C));
    }
  }
  const at::Tensor table = way.random({5, 8}), positions = way.random({4, 8}), tokens = way.tokens(5, {3, 4});
  EXPECT_TRUE(at::equal(way.kernels.embed(table, positions, tokens, 4), way.plain.embed(table, positions, tokens, 4)));
}

TEST(DeviceKernels, AddNormForwardAndBackward) {
  on_the_cpu(check_add_norm);
}
TEST(DeviceKernels, GeluAndBiasGradients) {
  on_the_cpu(check_gelu);
}
TEST(DeviceKernels, ClassifierInSharedMemory) {
  on_the_cpu(check_classifier);
}
TEST(DeviceKernels, ClassifierWithoutSharedMemory) {
  for (const bool half : {false, true}) {
    KernelsOnCpu launcher(half, /*shared_bytes=*/0);
    Way way(launcher, half, at::kCPU, "no shared memory");
    way.brief = true;
    check_classifier(way);
  }
}
TEST(DeviceKernels, ClassifierKeepsNanAndInfinity) {
  on_the_cpu(check_odd_logits);
}
TEST(DeviceKernels, EmbeddingForwardAndBackward) {
  on_the_cpu(check_embedding);
}

// Only with a GPU.
TEST(CudaKernels, AddNormForwardAndBackward) {
  on_the_gpu(check_add_norm);
}
TEST(CudaKernels, GeluAndBiasGradients) {
  on_the_gpu(check_gelu);
}
TEST(CudaKernels, Classifier) {
  on_the_gpu(check_classifier);
}
TEST(CudaKernels, ClassifierKeepsNanAndInfinity) {
  on_the_gpu(check_odd_logits);
}
TEST(CudaKernels, EmbeddingForwardAndBackward) {
  on_the_gpu(check_embedding);
}

}  // namespace
}  // namespace stepladder
