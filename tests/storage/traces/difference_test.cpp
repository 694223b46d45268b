#include "storage/traces/difference.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stepladder {
namespace {

TracedOperator row(const std::string& part, const std::string& name, double calls, double ms,
                   const std::string& launcher = "", const std::string& shapes = "") {
  return {.time = {.part = part, .name = name, .shapes = shapes, .calls = calls, .self_ms = ms},
          .busy_ms = ms,
          .launcher = launcher};
}

const RowDifference& of(const ProfileDifference& made, const std::string& name) {
  for (const RowDifference& each : made.rows) {
    for (const auto* side : {&each.before, &each.after}) {
      for (const TracedOperator& one : *side) {
        if (one.time.name == name) return each;
      }
    }
  }
  throw std::runtime_error("no row " + name);
}

// Three rows vary by 1 %; one of them has changed by 20 %, one by 1 %.
TEST(TraceDifference, rows_that_differ_beyond_the_noise_of_the_steps_are_marked) {
  const auto with_sd = [](const std::string& name, double ms, double sd) {
    TracedOperator made = row("forward", name, 1, ms);
    made.sd_ms = sd;
    return made;
  };
  const std::vector<TracedOperator> before{with_sd("a_kernel", 10, 0.1), with_sd("b_kernel", 10, 0.1),
                                           with_sd("c_kernel", 10, 0.1), row("forward", "d_kernel", 1, 10)};
  const std::vector<TracedOperator> after{with_sd("a_kernel", 8, 0.1), with_sd("b_kernel", 10.1, 0.1),
                                          with_sd("c_kernel", 10, 0.1), row("forward", "d_kernel", 1, 2)};
  const ProfileDifference made = difference(before, after, {{5, 0.3}, {5, 0.4}});
  EXPECT_TRUE(of(made, "a_kernel").is_clear);
  EXPECT_FALSE(of(made, "b_kernel").is_clear);
  EXPECT_FALSE(of(made, "c_kernel").is_clear);
  EXPECT_NEAR(of(made, "a_kernel").noise_ms, 2.306 * 0.1 * std::sqrt(2.0 / 5), 1e-4) << "t with 8 degrees of freedom";
  EXPECT_TRUE(is_missing(of(made, "d_kernel").noise_ms)) << "kept by a version that didn't know it";
  EXPECT_FALSE(of(made, "d_kernel").is_clear);
  EXPECT_TRUE(is_missing(of(difference(before, after, {{5, 0.3}, {1}}), "a_kernel").noise_ms)) << "one step";
  EXPECT_TRUE(is_missing(of(difference(before, after), "a_kernel").noise_ms));
  EXPECT_NEAR(made.noise_ms, 2.365 * std::sqrt((0.09 + 0.16) / 5), 0.01) << "of the step, by Welch";
}

TEST(TraceDifference, each_change_has_its_name_and_the_rows_add_up) {
  const std::vector<TracedOperator> before{row("forward", "sgemm", 24, 50, "aten::mm", "8x8 8x8"),
                                           row("forward", "sgemm", 24, 20, "aten::mm", "8x8 8x16"),
                                           row("forward", "gelu_kernel", 12, 9, "aten::gelu"),
                                           row("forward", "add_kernel", 12, 6, "aten::add"),
                                           row("backward", "gelu_backward_kernel", 12, 8, "aten::gelu_backward"),
                                           row("forward", "softmax_kernel", 12, 7, "aten::_softmax"),
                                           row("forward", "bmm_kernel", 24, 5, "aten::bmm"),
                                           row("optimiser", "multi_tensor_apply_kernel", 40, 10),
                                           row("forward", "Memcpy HtoD", 10, 5),
                                           row("", "launch gap", 0, 30),
                                           row("forward", "ncclDevKernel_AllReduce", 5, 3)};
  const std::vector<TracedOperator> after{
      row("forward", "tensorop_gemm", 24, 12, "aten::mm", "8x8 8x8"),
      row("forward", "sgemm", 24, 15, "aten::mm", "8x8 8x16"),
      row("forward", "triton_poi_fused_add_gelu_0", 12, 7),
      row("backward", "gelu_backward_kernel", 12, 8, "aten::gelu_backward"),
      row("forward", "flash_fwd_kernel", 12, 2, "aten::_scaled_dot_product_flash_attention"),
      row("optimiser", "multi_tensor_apply_kernel", 4, 1),
      row("", "launch gap", 0, 1)};
  const ProfileDifference made = difference(before, after);
  double sum = 0;
  for (const RowDifference& each : made.rows) sum += each.delta_ms();
  EXPECT_NEAR(sum, made.after_ms - made.before_ms, 1e-9);
  EXPECT_DOUBLE_EQ(made.before_ms, 153);
  EXPECT_EQ(of(made, "tensorop_gemm").change, RowChange::replaced);
  EXPECT_EQ(of(made, "triton_poi_fused_add_gelu_0").change, RowChange::fused);
  EXPECT_EQ(of(made, "triton_poi_fused_add_gelu_0").before.size(), 2U);
  EXPECT_DOUBLE_EQ(of(made, "triton_poi_fused_add_gelu_0").delta_ms(), 7 - 15);
  EXPECT_EQ(of(made, "gelu_backward_kernel").change, RowChange::same);
  EXPECT_EQ(of(made, "flash_fwd_kernel").change, RowChange::fused);
  EXPECT_EQ(of(made, "flash_fwd_kernel").before.size(), 2U);
  EXPECT_EQ(of(made, "multi_tensor_apply_kernel").change, RowChange::fewer_calls);
  EXPECT_EQ(of(made, "Memcpy HtoD").change, RowChange::vanished);
  EXPECT_EQ(of(made, "launch gap").change, RowChange::faster);
  EXPECT_EQ(of(made, "launch gap").kind, OperatorKind::idle);
  EXPECT_EQ(of(made, "ncclDevKernel_AllReduce").kind, OperatorKind::communication);
}

TEST(TraceDifference, another_kernel_of_the_same_operator_replaces_it) {
  const ProfileDifference made =
      difference(std::vector{row("forward", "ampere_sgemm", 24, 50, "aten::mm", "8x8 8x8")},
                 std::vector{row("forward", "ampere_bf16_s16816gemm", 24, 5, "aten::mm", "8x8 8x8")});
  ASSERT_EQ(made.rows.size(), 1U);
  EXPECT_EQ(made.rows.front().change, RowChange::replaced);
  EXPECT_DOUBLE_EQ(made.rows.front().delta_ms(), -45);
}

TEST(TraceDifference, the_other_way_round_it_has_the_same_rows) {
  const std::vector<TracedOperator> eager{row("forward", "aten::gelu", 12, 9), row("forward", "aten::mul", 12, 6),
                                          row("forward", "aten::_softmax", 12, 7),
                                          row("backward", "aten::mm", 4, 5, "", "8x8 8x8")};
  const std::vector<TracedOperator> compiled{row("forward", "triton_poi_fused_mul_gelu_0", 12, 7),
                                             row("forward", "aten::_scaled_dot_product_flash_attention_for_cpu", 12, 2),
                                             row("backward", "aten::addmm", 4, 4, "", "8x8 8x8")};
  const ProfileDifference there = difference(eager, compiled), back = difference(compiled, eager);
  ASSERT_EQ(there.rows.size(), 3U);
  ASSERT_EQ(back.rows.size(), 3U);
  EXPECT_EQ(of(there, "aten::gelu").change, RowChange::fused);
  EXPECT_EQ(of(back, "aten::gelu").change, RowChange::split);
  EXPECT_EQ(of(back, "aten::gelu").before.size(), 1U);
  EXPECT_EQ(of(back, "aten::gelu").after.size(), 2U);
  EXPECT_EQ(of(there, "aten::mm").change, RowChange::replaced);  // a product of the same operands
  for (const char* name : {"aten::gelu", "aten::_softmax", "aten::mm"})
    EXPECT_DOUBLE_EQ(of(there, name).delta_ms(), -of(back, name).delta_ms()) << name;
}

// The engine's kernels have names of their own, and an optimiser may be one call instead of many.
TEST(TraceDifference, other_operators_of_the_same_kind_and_part_replace_those_before) {
  const std::vector<TracedOperator> before{
      row("forward", "aten::gelu", 12, 9), row("backward", "aten::gelu_backward", 12, 8),
      row("optimiser", "aten::_foreach_mul_", 4, 5), row("optimiser", "aten::_foreach_add_", 4, 5),
      row("forward", "aten::_softmax", 1, 1)};
  const std::vector<TracedOperator> after{
      row("forward", "plan::gelu", 48, 3), row("backward", "plan::gelu_backward", 48, 2),
      row("optimiser", "aten::_fused_adamw_", 1, 4), row("forward", "aten::view", 1, 0.5)};
  const ProfileDifference made = difference(before, after);
  for (const char* name : {"plan::gelu", "plan::gelu_backward", "aten::_fused_adamw_"})
    EXPECT_EQ(of(made, name).change, RowChange::replaced) << name;
  EXPECT_EQ(of(made, "aten::_fused_adamw_").before.size(), 2U);
  EXPECT_EQ(of(made, "plan::gelu").before.front().time.name, "aten::gelu");
  EXPECT_EQ(part_of(of(made, "plan::gelu")), "forward");
  EXPECT_EQ(of(made, "aten::_softmax").change, RowChange::vanished);
  EXPECT_EQ(of(made, "aten::view").change, RowChange::appeared);
}

TEST(TraceDifference, a_step_compared_with_itself_has_no_difference) {
  const std::vector<TracedOperator> rows{row("forward", "a::b", 1, 5), row("", "", 0, 2)};
  for (const RowDifference& each : difference(rows, rows).rows) EXPECT_EQ(each.change, RowChange::same);
  EXPECT_TRUE(difference({}, {}).rows.empty());
}

}  // namespace
}  // namespace stepladder
