// The fused classifier against the plain way: logits, log-softmax, mean.
#include "engine/trainer/kernels/classifier.h"

#include <gtest/gtest.h>

#include "engine/trainer/kernels/softmax_rows.h"

namespace stepladder {
namespace {

struct Result {
  double loss;
  at::Tensor d_hidden, d_weight;
};

template <class Loss>
Result differentiate(const at::Tensor& hidden, const at::Tensor& weight, double factor, Loss loss_of) {
  const at::Tensor h = hidden.detach().clone().requires_grad_(), w = weight.detach().clone().requires_grad_();
  const at::Tensor loss = loss_of(h, w);
  (loss * factor).backward();
  return {loss.item<double>(), h.grad(), w.grad()};
}

// 20,000 columns make a chunk of 838 rows, so 2,000 rows are three chunks.
TEST(Classifier, LossAndGradientsAreThoseOfThePlainWay) {
  torch::manual_seed(1);
  for (const auto [N, C, V, padding] :
       {std::array<std::int64_t, 4>{7, 8, 11, 0}, {1, 4, 2, 126}, {64, 32, 300, 84}, {2000, 16, 19'990, 10}}) {
    const at::Tensor hidden = at::randn({N, C}), weight = at::randn({V + padding, C}) * 3;
    const at::Tensor targets = at::randint(V, {N}, at::kLong);
    for (const double factor : {1.0, 0.25}) {
      const Result plain = differentiate(hidden, weight, factor, [&](const at::Tensor& h, const at::Tensor& w) {
        return at::cross_entropy_loss(at::linear(h, w.narrow(0, 0, V)), targets);
      });
      const Result fused = differentiate(hidden, weight, factor, [&](const at::Tensor& h, const at::Tensor& w) {
        return fused_classifier(h, w, targets, V);
      });
      EXPECT_NEAR(fused.loss, plain.loss, 1e-5 * plain.loss);
      EXPECT_TRUE(at::allclose(fused.d_hidden, plain.d_hidden, 1e-4, 1e-7)) << N << " rows";
      EXPECT_TRUE(at::allclose(fused.d_weight, plain.d_weight, 1e-4, 1e-7)) << N << " rows";
      const at::NoGradGuard no_grad;
      EXPECT_NEAR(fused_classifier(hidden, weight, targets, V).item<double>(), plain.loss, 1e-5 * plain.loss);
    }
  }
}

TEST(Classifier, TheExponentialHoldsOverItsWholeRange) {
  const std::int64_t columns = 4001;
  std::vector<float> row(columns);
  for (std::int64_t i = 0; i < columns; ++i) row[static_cast<std::size_t>(i)] = -0.025F * static_cast<float>(i);
  const at::Tensor logits = at::tensor(row).to(at::kDouble);
  const std::int64_t target = 17;
  double loss = 0;
  softmax_rows(row.data(), 1, columns, columns, &target, 1.0F, &loss);
  at::Tensor expected = at::softmax(logits, 0);
  expected[target] -= 1;
  const double expected_loss = -at::log_softmax(logits, 0)[target].item<double>();
  EXPECT_NEAR(loss, expected_loss, 1e-6 * expected_loss);  // how the sum is rounded depends on the CPU's vectors
  EXPECT_TRUE(at::allclose(at::tensor(row).to(at::kDouble), expected, 1e-5, 1e-30));
}

TEST(Classifier, LogitsThatAreNotFiniteGiveALossThatIsNotFinite) {
  const at::Tensor weight = at::ones({3, 2});
  const at::Tensor targets = at::zeros({1}, at::kLong);
  const at::Tensor hidden = at::full({1, 2}, std::numeric_limits<double>::quiet_NaN(), at::kFloat);
  EXPECT_FALSE(std::isfinite(fused_classifier(hidden, weight, targets, 3).item<double>()));
}

}  // namespace
}  // namespace stepladder
