#include "storage/traces/kind_roofline.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

// A row of a CPU that is `ms` of a step, with its work a step.
TracedOperator traced_row(const std::string& name, double ms, const Work& work = {}) {
  TracedOperator made{.time = {.part = "forward", .name = name, .calls = 1, .self_ms = ms, .flops = work.flops},
                      .busy_ms = 10 * ms};
  made.bytes = work.bytes;
  return made;
}

TraceProfile profile_of(std::vector<TracedOperator> rows, bool on_gpu = false) {
  return {.on_gpu = on_gpu, .operators = std::move(rows)};
}

HardwareTable table_of(const std::string& rows) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "hardware.csv";
  std::ofstream(file) << with_row("", {.name = "unused", .source = "test"}) << rows;
  return HardwareTable::read(file);
}

HardwareTable one_device(const std::string& name, double fp32, double bf16, double gb_s) {
  Hardware row{.name = name, .bandwidth_gb_s = gb_s, .source = "test"};
  row.peak_tflops[static_cast<std::size_t>(Precision::fp32)] = fp32;
  row.peak_tflops[static_cast<std::size_t>(Precision::bf16)] = bf16;
  const std::string text = with_row("", row);
  return table_of(text.substr(text.find('\n') + 1));
}

TEST(KindRoofline, IsTheLowerOneOfPeakAndMemory) {
  const Ceiling ceiling = ceiling_of(one_device("Box", 10, 20, 100), "Box", "fp32");
  EXPECT_EQ(ceiling.tflops, 10);
  // 2e9 FLOPs at 10 TFLOP/s take 0.2 ms, 12 MB at 100 GB/s 0.12 ms. A thin product of 4 MB takes 0.04 ms.
  const std::vector<KindRoofline> found =
      rooflines(profile_of({traced_row("aten::mm", 1, {2e9, 12e6}), traced_row("aten::mm", 0.1, {2e6, 4e6}),
                            traced_row("aten::mm", 0.9), traced_row("aten::gelu", 0.5, {missing, 20e6})}),
                ceiling);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].kind, OperatorKind::products);
  EXPECT_NEAR(found[0].ms, 2, 1e-9);
  EXPECT_NEAR(found[0].known_ms, 1.1, 1e-9);  // of one product nothing is known
  EXPECT_NEAR(found[0].least_ms, 0.24, 1e-9);
  EXPECT_NEAR(found[0].tflops(), 2.002 / 1.1, 1e-9);
  EXPECT_NEAR(found[0].share(), 0.24 / 1.1, 1e-9);
  EXPECT_FALSE(found[0].is_memory_bound);
  EXPECT_EQ(found[1].kind, OperatorKind::gelu);
  EXPECT_TRUE(is_missing(found[1].tflops()));  // nobody counts them
  EXPECT_NEAR(found[1].gb_s(), 40, 1e-9);
  EXPECT_NEAR(found[1].share(), 0.4, 1e-9);
  EXPECT_TRUE(found[1].is_memory_bound);
}

TEST(KindRoofline, ProductsInFp8HaveTheirOwnPeak) {
  const Ceiling ceiling{
      .hardware = "H", .precision = Precision::bf16, .tflops = 10, .fp8_tflops = 20, .bandwidth_gb_s = 1e6};
  TracedOperator kernel = traced_row("nvjet_qqtst_128x256", 1, {1e10, 1e3});
  kernel.launcher = "aten::_scaled_mm";
  const std::vector<KindRoofline> found =
      rooflines(profile_of({kernel, traced_row("aten::mm", 1, {5e9, 1e3})}), ceiling);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].least_ms, 1, 1e-9) << "0.5 ms each";
  Ceiling unknown = ceiling;
  unknown.fp8_tflops = missing;
  EXPECT_EQ(of_operator(unknown, "aten::_scaled_mm").tflops, 10);
}

TEST(KindRoofline, ClaimsNothingOfWhatIsMostlyUnknown) {
  const Ceiling ceiling = ceiling_of(one_device("Box", 10, 20, 100), "Box", "fp32");
  const KindRoofline found =
      rooflines(profile_of({traced_row("aten::mm", 1, {2e9, 12e6}), traced_row("aten::mm", 1.5)}), ceiling).front();
  EXPECT_NEAR(found.least_ms, 0.2, 1e-9);
  EXPECT_TRUE(is_missing(found.share()));
}

TEST(KindRoofline, AGpusTimeIsHowLongItsKernelsRan) {
  const Ceiling ceiling = ceiling_of(one_device("Box", 10, 20, 100), "Box", "fp32");
  const KindRoofline found = rooflines(profile_of({traced_row("aten::mm", 1, {2e9, 12e6})}, true), ceiling).front();
  EXPECT_EQ(found.known_ms, 10);
}

TEST(KindRoofline, RanksOfACpuShareIt) {
  const Ceiling ceiling = ceiling_of(one_device("Box", 10, 20, 100), "Box", "fp32");
  TraceProfile profile = profile_of({traced_row("aten::mm", 1, {2e9, 12e6})});
  profile.ranks = 2;
  EXPECT_NEAR(rooflines(profile, ceiling).front().least_ms, 0.4, 1e-9);
  profile.on_gpu = true;
  EXPECT_NEAR(rooflines(profile, ceiling).front().least_ms, 0.2, 1e-9);
}

TEST(KindRoofline, TheTimeOfAKernelsHelpersIsKnownWithItsWork) {
  const Ceiling ceiling = ceiling_of(one_device("Box", 10, 20, 100), "Box", "fp32");
  std::vector<TracedOperator> rows{traced_row("sgemm_main", 1, {2e9, 12e6}), traced_row("splitKreduce_sgemm", 1),
                                   traced_row("sgemm_other", 1)};
  rows[0].launcher = rows[1].launcher = "aten::mm";
  rows[2].launcher = "aten::bmm";
  const std::vector<KindRoofline> found = rooflines(profile_of(std::move(rows), true), ceiling);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].ms, 30, 1e-9);
  EXPECT_NEAR(found[0].known_ms, 20, 1e-9);
  EXPECT_NEAR(found[0].least_ms, 0.2, 1e-9);
}

TEST(KindRoofline, ClaimsNothingWithoutACeiling) {
  const HardwareTable table = one_device("Box", 10, 20, 100);
  const TraceProfile profile = profile_of({traced_row("aten::mm", 1, {2e9, 12e6})});
  for (const Ceiling& ceiling : {ceiling_of(table, "", "fp32"), ceiling_of(table, "Other", "fp32"),
                                 ceiling_of(table, "Box", ""), ceiling_of(table, "Box", "fp16")}) {
    EXPECT_NEAR(rooflines(profile, ceiling).front().tflops(), 2, 1e-9);
    EXPECT_TRUE(is_missing(rooflines(profile, ceiling).front().share()));
  }
}

TEST(KindRoofline, WhatWasMeasuredHereCountsBeforeADatasheet) {
  const HardwareTable table = one_device("Box (measured here)", 7, 9, 50);
  EXPECT_EQ(ceiling_of(table, "Box", "bf16").tflops, 9);
}

}  // namespace
}  // namespace stepladder
