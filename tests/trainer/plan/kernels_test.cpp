// The planned step's own kernels against ATen's operations in double, at odd sizes; and the threads that run them.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <atomic>
#include <cmath>
#include <limits>

#include "engine/trainer/plan/attention_tiles.h"
#include "engine/trainer/plan/crew.h"
#include "engine/trainer/plan/pair_products.h"
#include "engine/trainer/plan/plan_loops.h"
#include "engine/trainer/plan/products.h"

namespace stepladder {
namespace {

float* floats(const at::Tensor& tensor) {
  return tensor.mutable_data_ptr<float>();
}

Bf16* halves(const at::Tensor& tensor) {
  return reinterpret_cast<Bf16*>(tensor.mutable_data_ptr<at::BFloat16>());
}

double gap(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor exact = b.to(at::kDouble);
  return ((a.to(at::kDouble) - exact).abs().max() / exact.abs().max().clamp_min(1e-30)).item<double>();
}

// left: (rows, depth), by rows or by columns; right: (depth, columns), packed from itself or from its transpose.
at::Tensor product_of(const at::Tensor& left, const at::Tensor& right, bool left_by_columns, bool from_transpose,
                      bool half, const at::Tensor& start) {
  const std::int64_t rows = left.size(0), depth = left.size(1), columns = right.size(1);
  const at::Tensor stored = left_by_columns ? left.t().contiguous() : left.contiguous();
  const at::Tensor source = from_transpose ? right.t().contiguous() : right.contiguous();
  const at::Tensor panels =
      at::full({panel_elements(depth, columns)}, 7, half ? at::kBFloat16 : at::kFloat);  // every element is written
  const std::int64_t stride = source.size(1);
  if (from_transpose) {
    half ? pack_transposed(floats(source), stride, depth, columns, halves(panels))
         : pack_transposed(floats(source), stride, depth, columns, floats(panels));
  } else {
    half ? pack_panels(floats(source), stride, depth, columns, halves(panels))
         : pack_panels(floats(source), stride, depth, columns, floats(panels));
  }
  const at::Tensor out = start.defined() ? start.clone() : at::full({rows, columns}, 3, at::kFloat);
  const Product product{.rows = rows,
                        .columns = columns,
                        .depth = depth,
                        .left = floats(stored),
                        .left_row = left_by_columns ? 1 : depth,
                        .left_depth = left_by_columns ? rows : 1,
                        .out = floats(out),
                        .out_row = columns,
                        .add = start.defined()};
  half ? multiply(product, halves(panels)) : multiply(product, floats(panels));
  return out;
}

TEST(Products, AreMatmulAtOddSizes) {
  torch::manual_seed(1);
  using Size = std::array<std::int64_t, 3>;
  for (const auto [rows, columns, depth] :
       {Size{1, 1, 1}, {63, 65, 100}, {13, 16, 257}, {6, 300, 64}, {129, 33, 1000}}) {
    const at::Tensor left = at::randn({rows, depth}),
                     right = at::randn({depth, columns}).to(at::kBFloat16).to(at::kFloat);
    const at::Tensor start = at::randn({rows, columns});
    const at::Tensor exact = at::matmul(left.to(at::kDouble), right.to(at::kDouble));
    for (int way = 0; way < 8; ++way) {
      const std::string what = std::to_string(rows) + " x " + std::to_string(columns) + " x " + std::to_string(depth) +
                               ", way " + std::to_string(way);
      EXPECT_LT(gap(product_of(left, right, way & 1, way & 2, way & 4, {}), exact), 1e-5) << what;
      EXPECT_LT(gap(product_of(left, right, way & 1, way & 2, way & 4, start), exact + start), 1e-5) << what;
    }
  }
}

TEST(Products, HaveTheSameBitsWhenTheyAreSplit) {
  torch::manual_seed(2);
  const at::Tensor left = at::randn({70, 300}), right = at::randn({300, 80});
  const at::Tensor whole = product_of(left, right, false, false, false, {});
  const at::Tensor upper = product_of(left.narrow(0, 0, 31), right, false, false, false, {});
  const at::Tensor lower = product_of(left.narrow(0, 31, 39), right, true, true, false, {});
  EXPECT_TRUE(at::equal(at::cat({upper, lower}), whole));
}

TEST(Products, HaveAVariantForEachVectorUnit) {
  torch::manual_seed(6);
  const std::int64_t rows = 31, columns = 21, depth = 300;  // 31: all sizes of a variant's rows at once
  const at::Tensor left = at::randn({rows, depth}), right = at::randn({depth, columns});
  const at::Tensor panels = at::empty({panel_elements(depth, columns)});
  pack_panels(floats(right), columns, depth, columns, floats(panels));
  const at::Tensor exact = at::matmul(left.to(at::kDouble), right.to(at::kDouble));
  for (const int lanes : {4, 8, 16}) {
    const at::Tensor out = at::full({rows, columns}, 3, at::kFloat);
    multiply_by(lanes,
                {.rows = rows,
                 .columns = columns,
                 .depth = depth,
                 .left = floats(left),
                 .left_row = depth,
                 .out = floats(out),
                 .out_row = columns},
                floats(panels));
    EXPECT_LT(gap(out, exact), 1e-5) << lanes << " lanes";
  }
}

TEST(Products, KeepWhatIsNotANumber) {
  torch::manual_seed(3);
  at::Tensor left = at::randn({9, 40});
  const at::Tensor right = at::randn({40, 20});
  left[2][5] = std::numeric_limits<float>::quiet_NaN();
  left[4][0] = std::numeric_limits<float>::infinity();
  const at::Tensor out = product_of(left, right, false, false, false, {});
  EXPECT_TRUE(out[2].isnan().all().item<bool>());
  EXPECT_TRUE(out[4].isinf().all().item<bool>());
  EXPECT_EQ(out.isfinite().sum().item<std::int64_t>(), 7 * 20);
}

// Every unit that this CPU has, and the plain ones.
std::vector<PairUnit> pair_units() {
  std::vector<PairUnit> units = {PairUnit::plain, PairUnit::plain_tiles};
  if (pair_unit() != PairUnit::none) units.push_back(pair_unit());
  return units;
}

class PairProducts : public testing::TestWithParam<PairUnit> {
 public:
  void SetUp() override { use_pair_unit(GetParam()); }
  void TearDown() override { use_pair_unit(own_); }

 private:
  const PairUnit own_ = pair_unit();
};

// left: (rows, depth), right: (depth, columns), both of bf16's values. `way`: packed from the transpose; from bf16; in
// two pieces of the depth.
at::Tensor pair_product_of(const at::Tensor& left, const at::Tensor& right, int way, const at::Tensor& start) {
  const std::int64_t rows = left.size(0), depth = left.size(1), columns = right.size(1);
  const at::Tensor panels = at::full({pair_elements(depth, columns)}, 7, at::kBFloat16);
  if (way == 0) {
    pack_pairs(floats(right), columns, depth, columns, halves(panels));
  } else if (way == 1) {
    pack_pairs_transposed(floats(right.t().contiguous()), depth, depth, columns, halves(panels));
  } else {
    pack_pairs(halves(right.to(at::kBFloat16)), columns, depth, columns, halves(panels));
  }
  const at::Tensor half = left.to(at::kBFloat16);
  const at::Tensor out = start.defined() ? start.clone() : at::full({rows, columns}, 3, at::kFloat);
  PairProduct product{.rows = rows,
                      .columns = columns,
                      .depth = depth,
                      .left = halves(half),
                      .left_row = depth,
                      .out = floats(out),
                      .out_row = columns,
                      .add = start.defined()};
  const std::int64_t piece = 32;
  if (way == 2 && depth > piece) {
    product.panel_depth = depth;
    product.depth = piece;
    multiply(product, halves(panels));
    product.depth = depth - piece;
    product.left += piece;
    product.add = true;
    multiply(product, halves(panels) + piece * panel_columns);
  } else {
    multiply(product, halves(panels));
  }
  return out;
}

TEST_P(PairProducts, AreMatmulAtOddSizes) {
  torch::manual_seed(4);
  using Size = std::array<std::int64_t, 3>;
  for (const auto [rows, columns, depth] :
       {Size{1, 1, 1}, {63, 65, 100}, {13, 16, 257}, {16, 33, 64}, {33, 32, 31}, {64, 96, 128}, {40, 20, 2100}}) {
    const auto draw = [](std::int64_t n, std::int64_t m) { return at::randn({n, m}).to(at::kBFloat16).to(at::kFloat); };
    const at::Tensor left = draw(rows, depth), right = draw(depth, columns), start = at::randn({rows, columns});
    const at::Tensor exact = at::matmul(left.to(at::kDouble), right.to(at::kDouble));
    for (int way = 0; way < 3; ++way) {
      const std::string what = std::to_string(rows) + " x " + std::to_string(columns) + " x " + std::to_string(depth) +
                               ", way " + std::to_string(way);
      EXPECT_LT(gap(pair_product_of(left, right, way, {}), exact), 1e-5) << what;
      EXPECT_LT(gap(pair_product_of(left, right, way, start), exact + start), 1e-5) << what;
    }
  }
}

TEST_P(PairProducts, HaveTheSameBitsWhenTheyAreSplit) {
  torch::manual_seed(5);
  const auto draw = [](std::int64_t n, std::int64_t m) { return at::randn({n, m}).to(at::kBFloat16).to(at::kFloat); };
  const at::Tensor left = draw(70, 300), right = draw(300, 80);
  const at::Tensor whole = pair_product_of(left, right, 0, {});
  const at::Tensor upper = pair_product_of(left.narrow(0, 0, 31), right, 0, {});
  const at::Tensor lower = pair_product_of(left.narrow(0, 31, 39), right, 1, {});
  EXPECT_TRUE(at::equal(at::cat({upper, lower}), whole));
}

// What lies behind a row's end, or a row that C doesn't have, is multiplied with nothing.
TEST_P(PairProducts, KeepWhatIsNotANumberToItself) {
  torch::manual_seed(6);
  at::Tensor left = at::randn({9, 41});
  left[2][5] = std::numeric_limits<float>::quiet_NaN();
  left[4][0] = std::numeric_limits<float>::infinity();
  const at::Tensor out = pair_product_of(left, at::randn({41, 20}), 0, {});
  EXPECT_TRUE(out[2].isnan().all().item<bool>());
  EXPECT_FALSE(out[4].isfinite().any().item<bool>());
  EXPECT_EQ(out.isfinite().sum().item<std::int64_t>(), 7 * 20);
}

INSTANTIATE_TEST_SUITE_P(Units, PairProducts, testing::ValuesIn(pair_units()),
                         [](const auto& unit) { return std::to_string(static_cast<int>(unit.param)); });

TEST(PairPacking, TransposesToBf16) {
  torch::manual_seed(7);
  for (const auto& [rows, columns] : {std::pair{1, 1}, {33, 17}, {64, 48}, {31, 100}}) {
    const at::Tensor from = at::randn({rows, columns}), half = from.to(at::kBFloat16);
    const at::Tensor to = at::full({columns, rows + 3}, 7, at::kBFloat16);
    transpose_to_half(floats(from), columns, rows, columns, halves(to), rows + 3);
    EXPECT_TRUE(at::equal(to.narrow(1, 0, rows), half.t()));
    EXPECT_TRUE((to.narrow(1, rows, 3) == 7).all().item<bool>());
    transpose_to_half(halves(half), columns, rows, columns, halves(to), rows + 3);
    EXPECT_TRUE(at::equal(to.narrow(1, 0, rows), half.t()));
  }
}

struct Attended {
  at::Tensor out, d_q, d_k, d_v;
};

Attended plain_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& d_out) {
  const auto own = [](const at::Tensor& x) { return x.to(at::kDouble).detach().requires_grad_(); };
  const at::Tensor a = own(q), b = own(k), c = own(v);
  const at::Tensor future = at::ones({q.size(0), q.size(0)}, at::kBool).triu(1);
  const at::Tensor scores = at::matmul(a, b.t()) / std::sqrt(static_cast<double>(q.size(1)));
  const at::Tensor out =
      at::matmul(at::softmax(scores.masked_fill(future, -std::numeric_limits<double>::infinity()), -1), c);
  (out * d_out.to(at::kDouble)).sum().backward();
  return {out.detach(), a.grad(), b.grad(), c.grad()};
}

// By the kernels, with queries, keys and values side by side as in the model.
template <class T, class Elements>
Attended tiled_attention(const at::Tensor& qkv, const at::Tensor& d_out, const Elements& elements) {
  const std::int64_t length = qkv.size(0), d = qkv.size(1) / 3;
  const HeadShape head{length, d, 3 * d, d};
  const at::Tensor out = at::empty({length, d}, qkv.options()), d_qkv = at::empty_like(qkv);
  const at::Tensor log_sums = at::empty({length}), scratch = at::full({attention_scratch(head) + 1}, 5, at::kFloat);
  const T* const q = elements(qkv);
  attention_forward(head, q, q + d, q + 2 * d, elements(out), floats(log_sums), floats(scratch));
  T* const d_q = elements(d_qkv);
  attention_backward(head,
                     HeadGradients<T>{q, q + d, q + 2 * d, elements(out), floats(log_sums), elements(d_out), d_q,
                                      d_q + d, d_q + 2 * d},
                     floats(scratch));
  EXPECT_EQ(scratch[-1].item<float>(), 5) << "wrote behind its scratch memory";
  const auto parts = d_qkv.split(d, 1);
  return {out, parts[0], parts[1], parts[2]};
}

// Sets the units back at its end.
class Units {
 public:
  ~Units() {
    use_vector_unit(vectors_);
    use_pair_unit(pairs_);
  }
  Units() = default;
  Units(const Units&) = delete;
  Units& operator=(const Units&) = delete;

  // This CPU's, each with a way to multiply bf16.
  std::vector<std::pair<VectorUnit, PairUnit>> all() const {
    std::vector<std::pair<VectorUnit, PairUnit>> units;
    for (const VectorUnit unit : {VectorUnit::plain, VectorUnit::avx2, VectorUnit::avx512}) {
      if (unit <= vectors_) units.emplace_back(unit, PairUnit::none);
    }
    for (const PairUnit unit : {PairUnit::plain, pairs_}) units.emplace_back(vectors_, unit);
    return units;
  }

 private:
  const VectorUnit vectors_ = vector_unit();
  const PairUnit pairs_ = pair_unit();
};

TEST(AttentionTiles, AreThePlainAttention) {
  torch::manual_seed(4);
  using Size = std::array<std::int64_t, 2>;
  const Units units;
  for (const auto [length, d] : {Size{1, 1},
                                 {1, 256},
                                 {16, 32},
                                 {17, 48},
                                 {63, 13},
                                 {64, 32},
                                 {65, 65},
                                 {127, 64},
                                 {130, 20},
                                 {257, 128},
                                 {1000, 64},
                                 {1300, 7}}) {
    const at::Tensor qkv = (at::randn({length, 3 * d}) * 2).to(at::kBFloat16).to(at::kFloat);
    const at::Tensor d_out = at::randn({length, d}).to(at::kBFloat16).to(at::kFloat);
    const auto parts = qkv.split(d, 1);
    const Attended exact = plain_attention(parts[0], parts[1], parts[2], d_out);
    for (const auto& [vectors, pairs] : units.all()) {
      use_vector_unit(vectors);
      use_pair_unit(pairs);
      const Attended whole = tiled_attention<float>(qkv, d_out, floats);
      const Attended half = tiled_attention<Bf16>(qkv.to(at::kBFloat16), d_out.to(at::kBFloat16), halves);
      const auto expect = [&](const at::Tensor Attended::*member, const char* what) {
        const std::string where = std::string(what) + ", " + std::to_string(length) + " x " + std::to_string(d) +
                                  ", units " + std::to_string(static_cast<int>(vectors)) + " and " +
                                  std::to_string(static_cast<int>(pairs));
        if (length == 1 && (member == &Attended::d_q || member == &Attended::d_k)) {  // zero but for rounding
          EXPECT_LT((whole.*member).abs().max().item<double>(), 1e-3) << where;
          return;
        }
        EXPECT_LT(gap(whole.*member, exact.*member), 1e-5) << where;
        EXPECT_LT(gap(half.*member, exact.*member), 2e-2) << "in bf16: " << where;
      };
      expect(&Attended::out, "output");
      expect(&Attended::d_q, "gradient of queries");
      expect(&Attended::d_k, "gradient of keys");
      expect(&Attended::d_v, "gradient of values");
    }
  }
}

// log sum exp is a number of its own in the backward pass, so its own accuracy counts.
TEST(AttentionTiles, KeepTheLogarithmOfTheSums) {
  torch::manual_seed(8);
  const Units units;
  const std::int64_t length = 300, d = 16;
  const at::Tensor qkv = at::randn({length, 3 * d}) * 6;  // scores up to about 100
  const auto parts = qkv.to(at::kDouble).split(d, 1);
  const at::Tensor scores = at::matmul(parts[0], parts[1].t()) / std::sqrt(static_cast<double>(d));
  const at::Tensor exact =
      scores.masked_fill(at::ones({length, length}, at::kBool).triu(1), -std::numeric_limits<double>::infinity())
          .logsumexp(1);
  const HeadShape head{length, d, 3 * d, d};
  for (const auto& [vectors, pairs] : units.all()) {
    use_vector_unit(vectors);
    const at::Tensor out = at::empty({length, d}), log_sums = at::empty({length});
    const at::Tensor scratch = at::empty({attention_scratch(head)});
    const float* const q = floats(qkv);
    attention_forward(head, q, q + d, q + 2 * d, floats(out), floats(log_sums), floats(scratch));
    EXPECT_LT((log_sums.to(at::kDouble) - exact).abs().max().item<double>(), 5e-5);
  }
}

TEST(AttentionTiles, KeepWhatIsNotANumber) {
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    at::Tensor qkv = at::ones({70, 3 * 8});
    qkv[66][8] = odd;  // a key
    const Attended found = tiled_attention<float>(qkv, at::ones({70, 8}), floats);
    EXPECT_TRUE(found.out.narrow(0, 66, 4).isnan().all().item<bool>());
    EXPECT_TRUE(found.out.narrow(0, 0, 64).isfinite().all().item<bool>()) << "of a tile that doesn't see the key";
  }
}

TEST(PlanLoops, AdamWIsTorchsFormula) {
  torch::manual_seed(5);
  const std::int64_t n = 1003;
  const at::Tensor weight = at::randn({n}), gradient = at::randn({n}), average = at::randn({n}) * 0.1,
                   square = at::rand({n}) * 0.1;
  const double lr = 1e-2, decay = 0.1, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, factor = 0.25;
  const double c1 = 1 - std::pow(beta1, 7), c2 = 1 - std::pow(beta2, 7);
  const at::Tensor g = gradient.to(at::kDouble) * factor;
  const at::Tensor m = average.to(at::kDouble) * beta1 + g * (1 - beta1);
  const at::Tensor v = square.to(at::kDouble) * beta2 + g * g * (1 - beta2);
  const at::Tensor exact = weight.to(at::kDouble) * (1 - lr * decay) - lr / c1 * m / (v.sqrt() / std::sqrt(c2) + eps);
  adamw({static_cast<float>(factor), static_cast<float>(1 - lr * decay), static_cast<float>(1 - beta1),
         static_cast<float>(beta2), static_cast<float>(1 - beta2), static_cast<float>(std::sqrt(c2)),
         static_cast<float>(eps), static_cast<float>(-lr / c1)},
        floats(gradient), n, floats(weight), floats(average), floats(square));
  EXPECT_LT(gap(weight, exact), 1e-6);
  EXPECT_LT(gap(average, m), 1e-6);
  EXPECT_LT(gap(square, v), 1e-6);
}

TEST(Crew, RunsEveryTaskOfAPhaseBeforeTheNextOne) {
  for (const int workers : {1, 2, 5}) {
    Crew crew(workers);
    for (int round = 0; round < 200; ++round) {
      std::vector<std::atomic<int>> calls(17);
      std::atomic<int> early{0};
      const auto count = [&](std::int64_t task, int worker) {
        ++calls[static_cast<std::size_t>(task)];
        if (worker < 0 || worker >= workers) ++early;
      };
      const auto check = [&](std::int64_t, int) {
        for (const auto& each : calls) early += each != 1;
      };
      const std::vector<Phase> phases = {{17, count}, {3, check}, {0, count}, {1, check}};
      crew.run(phases);
      EXPECT_EQ(early, 0);
      for (const auto& each : calls) EXPECT_EQ(each, 1);
    }
  }
}

}  // namespace
}  // namespace stepladder
