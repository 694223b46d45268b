#include "engine/device.h"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

TEST(Device, CpuIsDescribedWithoutLibTorch) {
  const DeviceReport report = describe_cpu();
  EXPECT_FALSE(report.cpu_name.empty());
  EXPECT_GE(report.cpu_cores, 1);
  EXPECT_TRUE(report.gpus.empty());
#ifdef __linux__
  EXPECT_GT(report.memory_bytes, 0);
  EXPECT_GT(available_memory_bytes(), 0);
  EXPECT_LE(available_memory_bytes(), report.memory_bytes);
#endif
}

TEST(Device, ResolveTakesTheFastestThereIs) {
  DeviceReport report;
  EXPECT_EQ(report.resolve("auto"), "cpu");
  report.mps = true;
  EXPECT_EQ(report.resolve("auto"), "mps");
  report.gpus.push_back({.name = "NVIDIA H200"});
  EXPECT_EQ(report.resolve("auto"), "cuda");
  EXPECT_EQ(report.resolve("cpu"), "cpu");
}

TEST(Device, Hardware) {
  DeviceReport report;
  report.cpu_name = "Some CPU";
  report.cpu_cores = 2;
  EXPECT_EQ(report.hardware("cpu"), "2 x Some CPU");
  report.cpu_cores = 1;
  EXPECT_EQ(report.hardware("cpu"), "1 x Some CPU");
  EXPECT_EQ(report.hardware("cuda"), "");
  report.gpus.push_back({.name = "NVIDIA H200"});
  EXPECT_EQ(report.hardware("cuda"), "NVIDIA H200");
}

}  // namespace
}  // namespace stepladder
