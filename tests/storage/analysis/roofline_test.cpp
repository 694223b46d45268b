#include "storage/analysis/roofline.h"

#include <gtest/gtest.h>

#include "storage/analysis/plausibility.h"

namespace stepladder {
namespace {

// GPT-2 124M, one sequence of 1024 tokens, bf16.
StepShape gpt2() {
  return {.model = {.params = 124'439'808, .layers = 12, .d_model = 768, .seq_len = 1024, .vocab = 50257},
          .tokens = 1024};
}

TEST(StepTraffic, counts_every_tensor_once_each_way) {
  const StepTraffic traffic = step_traffic(gpt2());
  EXPECT_DOUBLE_EQ(traffic.weights, 2.0 * 2 * 124'439'808);
  EXPECT_DOUBLE_EQ(traffic.gradients, 4.0 * 124'439'808);
  EXPECT_DOUBLE_EQ(traffic.optimizer, 28.0 * 124'439'808);
  // 16 d a layer: the 32 bytes x s b h of Korthikanti et al. without their 2 for dropout masks, written and read.
  EXPECT_DOUBLE_EQ(traffic.activations, 2.0 * (12.0 * 32 * 1024 * 768 + 2.0 * 1024 * 50257));
  EXPECT_DOUBLE_EQ(traffic.total(), traffic.weights + traffic.gradients + traffic.optimizer + traffic.activations);
}

TEST(StepTraffic, micro_batches_read_the_weights_again_and_add_to_the_gradients) {
  StepShape shape = gpt2();
  const StepTraffic one = step_traffic(shape);
  shape.micro_batches = 4;
  const StepTraffic four = step_traffic(shape);
  EXPECT_DOUBLE_EQ(four.weights, 4 * one.weights);
  EXPECT_DOUBLE_EQ(four.gradients, 7 * one.gradients);
  EXPECT_DOUBLE_EQ(four.optimizer, one.optimizer);
  EXPECT_DOUBLE_EQ(four.activations, one.activations);
}

TEST(StepTraffic, explicit_attention_stores_its_probabilities) {
  StepShape shape = gpt2();
  const double fused = step_traffic(shape).activations;
  shape.stores_scores = true;
  shape.heads = 12;
  // 2 a s^2 b bytes a layer (Korthikanti et al.), written and read.
  EXPECT_DOUBLE_EQ(step_traffic(shape).activations - fused, 2.0 * 12 * 2 * 12 * 1024 * 1024);
  shape.bytes_per_value = 4;
  EXPECT_GT(step_traffic(shape).activations, 2 * fused);
}

TEST(ArithmeticIntensity, grows_with_the_batch_and_is_missing_where_the_shape_is) {
  StepShape shape = gpt2();
  const double small = arithmetic_intensity(MfuConvention::six_n, shape);
  EXPECT_DOUBLE_EQ(small, 6.0 * 124'439'808 * 1024 / step_traffic(shape).total());
  shape.tokens *= 64;
  EXPECT_GT(arithmetic_intensity(MfuConvention::six_n, shape), small);
  EXPECT_GT(arithmetic_intensity(MfuConvention::palm, shape), arithmetic_intensity(MfuConvention::six_n, shape));
  shape.tokens = 0;
  EXPECT_TRUE(is_missing(arithmetic_intensity(MfuConvention::six_n, shape)));
}

TEST(Roofline, is_the_slope_of_the_memory_and_then_the_peak) {
  EXPECT_NEAR(ridge_intensity(312, 1555), 200.6, 0.05);  // A100 40GB, bf16
  EXPECT_DOUBLE_EQ(attainable_tflops(100, 312, 1555), 155.5);
  EXPECT_DOUBLE_EQ(attainable_tflops(1000, 312, 1555), 312);
  EXPECT_TRUE(is_missing(attainable_tflops(100, 312, missing)));
  EXPECT_TRUE(is_missing(ridge_intensity(missing, 1555)));
}

TEST(StepShapeOf, takes_a_recipe_of_ours_or_of_others_and_fills_in_the_published_gpt2) {
  stepladder::Run run;
  run.params = 834'304;
  run.tokens_per_step = 1536;
  run.precision = "fp32";
  run.attention = "explicit";
  run.recipe = R"({"layers": 4, "heads": 4, "d_model": 128, "vocab": 256, "seq": 64, "grad_accum": 2, "devices": 2})";
  StepShape shape = step_shape_of(run, {});
  EXPECT_TRUE(shape.known());
  EXPECT_EQ(shape.tokens, 768);
  EXPECT_EQ(shape.micro_batches, 2);
  EXPECT_EQ(shape.bytes_per_value, 4);
  EXPECT_TRUE(shape.stores_scores);

  run = {};
  run.params = 124'439'808;
  run.tokens_per_step = 8 * 4096;
  run.hardware = "8x A100";
  run.recipe = R"({"model.n_layer": 6, "block_size": 512})";
  shape = step_shape_of(run, {});
  EXPECT_EQ(shape.model.layers, 6);  // the recipe's word counts
  EXPECT_EQ(shape.model.d_model, 768);
  EXPECT_EQ(shape.model.vocab, 50257);
  EXPECT_EQ(shape.model.seq_len, 512);
  EXPECT_EQ(shape.tokens, 4096);
  run.device = "cpu";
  run.hardware = "8 x Intel Xeon";
  EXPECT_EQ(step_shape_of(run, {}).tokens, 8 * 4096);  // cores share one memory

  run.params = 1000;
  EXPECT_FALSE(step_shape_of(run, {}).known());
  run.recipe = "{\"layers\": \"many\"";
  EXPECT_EQ(step_shape_of(run, {}).model.layers, 0);
}

}  // namespace
}  // namespace stepladder
