#include "storage/traces/kind_roofline.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

TracedOperator traced_row(const std::string& name, const std::string& shapes, double calls, double busy_ms) {
  TracedOperator made{.time = {.part = "forward", .name = name, .shapes = shapes, .calls = calls, .self_ms = busy_ms},
                      .busy_ms = busy_ms};
  if (!shapes.empty()) made.time.flops = product_flops(shapes) * calls;
  return made;
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

TEST(KindRoofline, FlopsAndElementsFollowFromShapes) {
  EXPECT_EQ(product_flops("128x64 64x256"), 2.0 * 128 * 64 * 256);
  EXPECT_EQ(product_elements("128x64 64x256"), 128 * 64 + 64 * 256 + 128 * 256.0);
  EXPECT_EQ(product_flops("6x128x64 6x64x256"), 6 * 2.0 * 128 * 64 * 256);
  EXPECT_TRUE(is_missing(product_flops("")));
  EXPECT_TRUE(is_missing(product_flops("128x64")));
  EXPECT_TRUE(is_missing(product_elements("128x64 64x256 3x4")));
}

TEST(KindRoofline, IsTheLowerOneOfPeakAndMemory) {
  const HardwareTable table = one_device("Box", 10, 20, 100);
  const Ceiling ceiling = ceiling_of(table, "Box", "fp32");
  EXPECT_EQ(ceiling.tflops, 10);
  // 2 x 1000^3 FLOPs in 1 ms are 2 TFLOP/s; 12 MB in fp32 make 167 FLOP/byte, 16.7 TFLOP/s: the peak is lower.
  // A vector times a matrix: half a FLOP per byte, 0.05 TFLOP/s.
  const std::vector<TracedOperator> rows{traced_row("aten::mm", "1000x1000 1000x1000", 1, 1),
                                         traced_row("aten::gelu", "", 3, 0.5), traced_row("aten::mm", "", 2, 1)};
  const std::vector<KindRoofline> found = rooflines(rows, ceiling);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].kind, OperatorKind::products);
  EXPECT_EQ(found[0].busy_ms, 2);
  EXPECT_EQ(found[0].known_ms, 1);  // of the other product nothing is known
  EXPECT_NEAR(found[0].tflops, 2, 1e-9);
  EXPECT_NEAR(found[0].share(), 0.2, 1e-9);
  EXPECT_FALSE(found[0].is_memory_bound);
  EXPECT_TRUE(is_missing(found[1].flops));
  EXPECT_TRUE(is_missing(found[1].share()));
  const std::vector<TracedOperator> thin{traced_row("aten::mm", "1x1000 1000x1000", 1, 1)};
  const KindRoofline memory = rooflines(thin, ceiling).front();
  EXPECT_TRUE(memory.is_memory_bound);
  EXPECT_NEAR(memory.attainable, 2e6 / (1000 + 1e6 + 1000) / 4 * 100 / 1000, 1e-9);
  // In bf16 half the bytes.
  EXPECT_NEAR(rooflines(thin, ceiling_of(table, "Box", "bf16")).front().attainable, 2 * memory.attainable, 1e-9);
}

TEST(KindRoofline, ClaimsNothingWithoutACeiling) {
  const HardwareTable table = one_device("Box", 10, 20, 100);
  const std::vector<TracedOperator> rows{traced_row("aten::mm", "1000x1000 1000x1000", 1, 1)};
  for (const Ceiling& ceiling : {ceiling_of(table, "", "fp32"), ceiling_of(table, "Other", "fp32"),
                                 ceiling_of(table, "Box", ""), ceiling_of(table, "Box", "fp16")}) {
    EXPECT_NEAR(rooflines(rows, ceiling).front().tflops, 2, 1e-9);
    EXPECT_TRUE(is_missing(rooflines(rows, ceiling).front().share()));
  }
}

TEST(KindRoofline, WhatWasMeasuredHereCountsBeforeADatasheet) {
  const HardwareTable table = one_device("Box (measured here)", 7, 9, 50);
  EXPECT_EQ(ceiling_of(table, "Box", "bf16").tflops, 9);
}

}  // namespace
}  // namespace stepladder
