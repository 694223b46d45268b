// The fused kernels against ATen's own operations in double: results and gradients, at odd sizes, in float32 and bf16.
#include "engine/trainer/kernels/fused_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/trainer/settings.h"
#include "tests/trainer/trained.h"

namespace stepladder {
namespace {

using Tensors = std::vector<at::Tensor>;
using Operation = std::function<Tensors(const Tensors&)>;

// The operation's result, and the gradients of its inputs for a fixed weighted sum of the result.
Tensors results_and_gradients(const Operation& operation, const Tensors& inputs, at::ScalarType type,
                              Autocast autocast = Autocast::off) {
  Tensors own;
  for (const at::Tensor& input : inputs) own.push_back(input.detach().to(type).requires_grad_());
  Tensors all;
  {
    const AutocastScope scope(autocast, at::kCPU);
    all = operation(own);
  }
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const at::Tensor weights =
        at::arange(all[i].numel(), at::kDouble).mul(0.7).add(static_cast<double>(i)).cos().add(0.5);
    sum = sum + (all[i].to(at::kDouble) * weights.view_as(all[i])).sum();
  }
  sum.backward();
  for (at::Tensor& result : all) result = result.detach();
  for (const at::Tensor& input : own) {
    EXPECT_EQ(input.grad().scalar_type(), type);
    all.push_back(input.grad());
  }
  return all;
}

// Relative to the largest element: a gradient's small ones are differences of large ones.
void expect_near(const Tensors& fused, const Tensors& exact, double allowed, const std::string& what) {
  ASSERT_EQ(fused.size(), exact.size());
  for (std::size_t i = 0; i < fused.size(); ++i) {
    const double size = exact[i].abs().max().item<double>();
    const double gap = (fused[i].to(at::kDouble) - exact[i]).abs().max().item<double>();
    EXPECT_LE(gap, allowed * size) << what << ", result " << i << " of size " << size;
  }
}

// In float32 and under autocast, and without gradients.
void expect_same(const Operation& fused, const Operation& plain, const Tensors& inputs, const std::string& what) {
  const Tensors exact = results_and_gradients(plain, inputs, at::kDouble);
  const Tensors in_float = results_and_gradients(fused, inputs, at::kFloat);
  expect_near(in_float, exact, 3e-6, what + " in float32");
  const Tensors rounded = results_and_gradients(fused, inputs, at::kFloat, Autocast::bf16);
  expect_near(rounded, exact, 3e-2, what + " in bf16");
  const at::NoGradGuard no_grad;
  Tensors single;
  for (const at::Tensor& input : inputs) single.push_back(input.to(at::kFloat));
  const Tensors results = fused(single);
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_FALSE(results[i].requires_grad());
    EXPECT_TRUE(results[i].equal(in_float[i])) << what;
  }
}

// Every second column of a wider one: the same values, not contiguous.
at::Tensor strided(const at::Tensor& t) {
  at::Tensor wide = at::zeros({t.size(0), t.size(1), 2 * t.size(2)}, t.options());
  wide.slice(2, 0, 2 * t.size(2), 2).copy_(t);
  return wide.slice(2, 0, 2 * t.size(2), 2);
}

TEST(FusedMlp, IsThePlainOne) {
  torch::manual_seed(1);
  const Operation plain = [](const Tensors& in) -> Tensors {
    return {at::linear(at::gelu(at::linear(in[0], in[1], in[2]), "tanh"), in[3])};
  };
  for (const auto [B, T, C, D] : {std::array<std::int64_t, 4>{1, 1, 1, 1}, {2, 7, 5, 19}, {3, 67, 48, 131}}) {
    const Tensors inputs = {at::randn({B, T, C}), at::randn({D, C}), at::randn({D}), at::randn({C, D})};
    const std::string what = "the MLP of " + std::to_string(B * T) + " rows";
    for (const bool contiguous : {true, false}) {
      const Operation fused = [=](const Tensors& in) -> Tensors {
        return {fused_mlp(contiguous ? in[0] : strided(in[0]), in[1], in[2], in[3])};
      };
      expect_same(fused, plain, inputs, what);
    }
  }
}

// One by one over all that an activation can be: an MLP with one column, whose products are by 1.
TEST(FusedMlp, TheActivationHoldsOverItsWholeRange) {
  const at::Tensor x = at::linspace(-30, 30, 60'001, at::kDouble).view({1, -1, 1});
  const at::Tensor one = at::ones({1, 1}), none = at::zeros({1});
  const at::Tensor exact_x = x.detach().requires_grad_(), fused_x = x.to(at::kFloat).requires_grad_();
  const at::Tensor exact = at::gelu(exact_x, "tanh"), fused = fused_mlp(fused_x, one, none, one);
  exact.sum().backward();
  fused.sum().backward();
  EXPECT_TRUE(at::allclose(fused.to(at::kDouble), exact, 1e-6, 1e-7));
  EXPECT_TRUE(at::allclose(fused_x.grad().to(at::kDouble), exact_x.grad(), 1e-6, 1e-6));
}

TEST(FusedAddNorm, IsThePlainOne) {
  torch::manual_seed(2);
  const Operation plain = [](const Tensors& in) -> Tensors {
    const at::Tensor sum = in[0] + (in[1] + in[2]);
    return {sum, at::layer_norm(sum, in[3].sizes(), in[3], in[4], 1e-5)};
  };
  for (const auto [B, T, C] : {std::array<std::int64_t, 3>{1, 1, 4}, {2, 7, 5}, {3, 67, 131}}) {
    const Tensors inputs = {at::randn({B, T, C}) + 3, at::randn({B, T, C}), at::randn({C}), at::randn({C}),
                            at::randn({C})};
    const std::string what = "the norm of rows of " + std::to_string(C);
    for (const bool contiguous : {true, false}) {
      const Operation fused = [=](const Tensors& in) -> Tensors {
        const auto [sum, normed] = fused_add_norm(contiguous ? in[0] : strided(in[0]),
                                                  contiguous ? in[1] : strided(in[1]), in[2], in[3], in[4]);
        return {sum, normed};
      };
      expect_same(fused, plain, inputs, what);
    }
    const auto one_of = [](const Operation& operation, std::size_t i) {
      return [=](const Tensors& in) -> Tensors { return {operation(in)[i]}; };
    };
    const Operation fused = [](const Tensors& in) -> Tensors {
      const auto [sum, normed] = fused_add_norm(in[0], in[1], in[2], in[3], in[4]);
      return {sum, normed};
    };
    // Nothing uses the last norm's sum.
    expect_same(one_of(fused, 1), one_of(plain, 1), inputs, what + " alone");
  }
}

TEST(FusedAttention, IsThePlainOne) {
  torch::manual_seed(3);
  for (const auto [B, T, heads, d] :
       {std::array<std::int64_t, 4>{1, 1, 1, 1}, {2, 7, 3, 5}, {1, 33, 2, 16}, {2, 65, 1, 8}}) {
    const at::Tensor future = at::ones({T, T}, at::kBool).triu(1);
    const Operation plain = [=](const Tensors& in) -> Tensors {
      const auto of_heads = in[0].view({B, T, 3, heads, d}).permute({2, 0, 3, 1, 4});
      const at::Tensor scores = at::matmul(of_heads[0], of_heads[1].transpose(-2, -1)) / std::sqrt(d);
      const at::Tensor masked = scores.masked_fill(future, -std::numeric_limits<double>::infinity());
      return {at::matmul(at::softmax(masked, -1), of_heads[2]).transpose(1, 2).reshape({B, T, heads * d})};
    };
    for (const bool contiguous : {true, false}) {
      const Operation fused = [=](const Tensors& in) -> Tensors {
        return {fused_attention(contiguous ? in[0] : strided(in[0]), heads)};
      };
      expect_same(fused, plain, {at::randn({B, T, 3 * heads * d}) * 2}, "attention over " + std::to_string(T));
    }
  }
}

TEST(FusedBlocks, WhatIsNotANumberStaysNone) {
  for (const Autocast autocast : {Autocast::off, Autocast::bf16}) {
    const AutocastScope scope(autocast, at::kCPU);
    at::Tensor x = at::ones({1, 3, 4});
    x[0][1][2] = std::numeric_limits<float>::quiet_NaN();
    const at::Tensor w = at::ones({4, 4}), b = at::zeros({4});
    EXPECT_TRUE(fused_mlp(x, w, b, w)[0][1].isnan().all().item<bool>());
    EXPECT_TRUE(fused_add_norm(x, x, b, b, b).normed[0][1].isnan().all().item<bool>());
    EXPECT_TRUE(fused_attention(at::cat({x, x, x}, 2), 1)[0][1].isnan().any().item<bool>());
  }
}

TEST(FusedBlocks, TrainToTheSameBitsTwiceAndLikeThePlainOnes) {
  for (const Autocast autocast : {Autocast::off, Autocast::bf16}) {
    for (const Attention way : {Attention::explicit_scores, Attention::scaled_dot_product}) {
      Recipe recipe = tiny_recipe();
      recipe.steps = 10;
      recipe.seq = 13;
      recipe.threads = 2;
      recipe.autocast = autocast;
      recipe.attention = way;
      const auto plain = train_here(recipe).losses();
      recipe.compile = Compile::on;
      const auto fused = train_here(recipe).losses();
      EXPECT_EQ(train_here(recipe).losses(), fused);
      EXPECT_NE(fused, plain);  // else nothing was fused
      const double allowed = autocast == Autocast::off ? 1e-4 : 2e-2;
      ASSERT_EQ(fused.size(), plain.size());
      for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(fused[i], plain[i], allowed) << "step " << i + 1;
    }
  }
}

}  // namespace
}  // namespace stepladder
