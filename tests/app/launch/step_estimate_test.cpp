#include "app/launch/step_estimate.h"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

HardwareTable table() {
  return HardwareTable::read(std::string(STEPLADDER_SOURCE_DIR) + "/assets/hardware.csv");
}

TEST(StepEstimate, IsFlopsOverAModestShareOfThePeak) {
  DeviceReport report;
  report.gpus.push_back({.name = "NVIDIA A100-SXM4-40GB", .compute_major = 8});
  Recipe recipe;
  apply_preset(recipe, "gpt2");
  recipe.matmul = MatmulPrecision::tf32;
  const StepEstimate estimate = estimate_step(recipe, report, table());
  // 4,096 tokens x 859.9 MFLOP at 20 % of 156 TFLOP/s, and 4 GB at 1,555 GB/s.
  EXPECT_NEAR(estimate.seconds, 0.113 + 0.0026, 0.01);
  EXPECT_NE(estimate.basis.find("3.5"), std::string::npos) << estimate.basis;
  EXPECT_NE(estimate.basis.find("TFLOP a step at 20 % of a peak of 156 TFLOP/s"), std::string::npos) << estimate.basis;
}

TEST(StepEstimate, GuessesAnUnknownCpuAndSaysSo) {
  DeviceReport report;
  report.cpu_name = "Unheard-of";
  report.cpu_cores = 2;
  report.cpu_capability = "AVX2";
  Recipe recipe;
  recipe.vocab = 256;
  const StepEstimate small = estimate_step(recipe, report, table());
  EXPECT_GT(small.seconds, 0.001);
  EXPECT_LT(small.seconds, 1);
  EXPECT_NE(small.basis.find("guessed peak"), std::string::npos);
  recipe.steps = 10;
  EXPECT_DOUBLE_EQ(estimate_seconds({recipe, recipe}, report, table()), 20 * small.seconds);
  recipe.vocab = 0;
  EXPECT_TRUE(is_missing(estimate_step(recipe, report, table()).seconds)) << "its size isn't known";
  EXPECT_TRUE(is_missing(estimate_seconds({recipe}, report, table())));
}

}  // namespace
}  // namespace stepladder
