#include "storage/hardware.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

const HardwareTable& table() {
  static const HardwareTable hardware =
      HardwareTable::read(std::filesystem::path(STEPLADDER_SOURCE_DIR) / "assets" / "hardware.csv");
  return hardware;
}

std::string found(std::string_view name) {
  const Hardware* hardware = table().find(name);
  return hardware ? hardware->name : "unknown";
}

TEST(Hardware, is_found_however_it_is_written) {
  for (const char* name : {"NVIDIA GeForce RTX 3080", "RTX 3080", "RTX3080", "3080", "1x RTX3080", "geforce rtx 3080"})
    EXPECT_EQ(found(name), "NVIDIA GeForce RTX 3080") << name;
  EXPECT_EQ(found("RTX 3080 Ti"), "NVIDIA GeForce RTX 3080 Ti");
  EXPECT_EQ(found("RTX3080Ti"), "NVIDIA GeForce RTX 3080 Ti");
  EXPECT_EQ(found("NVIDIA GeForce RTX 4070 Ti SUPER"), "NVIDIA GeForce RTX 4070 Ti Super");
  EXPECT_EQ(found("A100"), "NVIDIA A100 40GB SXM");
  EXPECT_EQ(found("NVIDIA A100-SXM4-40GB"), "NVIDIA A100 40GB SXM");
  EXPECT_EQ(found("NVIDIA A100 80GB PCIe"), "NVIDIA A100 80GB PCIe");
  EXPECT_EQ(found("8xA100_80GB"), "NVIDIA A100 80GB SXM");
  EXPECT_EQ(found("NVIDIA H100 80GB HBM3"), "NVIDIA H100 SXM");
  EXPECT_EQ(found("NVIDIA H100 PCIe"), "NVIDIA H100 PCIe");
  EXPECT_EQ(found("NVIDIA RTX 6000 Ada Generation"), "NVIDIA RTX 6000 Ada");
  EXPECT_EQ(found("NVIDIA RTX A6000"), "NVIDIA RTX A6000");
  EXPECT_EQ(found("Tesla T4"), "NVIDIA T4");
  EXPECT_EQ(found("Tesla V100-SXM2-16GB"), "NVIDIA V100 SXM2");
  EXPECT_EQ(found("Apple M2 Max"), "Apple M2 Max");
  EXPECT_EQ(found("Apple M2"), "Apple M2");
  EXPECT_EQ(found("AMD Instinct MI300X"), "AMD Instinct MI300X");
}

TEST(Hardware, unknown_is_an_answer) {
  for (const char* name : {"", "NVIDIA GeForce RTX 3080 Laptop GPU", "Intel(R) Xeon(R) Platinum 8480C",
                           "AMD EPYC 7763 64-Core Processor", "A1000000", "GeForce"})
    EXPECT_EQ(found(name), "unknown") << name;
  EXPECT_FALSE(table().peak("Intel(R) Xeon(R)", "fp32").known());
}

TEST(Hardware, peaks_are_dense_and_by_precision) {
  EXPECT_EQ(table().peak("A100", "bfloat16").tflops, 312);
  EXPECT_EQ(table().peak("A100", "tensorfloat32").tflops, 156);
  EXPECT_EQ(table().peak("A100", "float32").tflops, 19.5);
  EXPECT_EQ(table().peak("3080", "bf16").tflops, 59.5);
  EXPECT_EQ(table().peak("8x NVIDIA H100", "amp_bf16").total_tflops(), 8 * 989.4);
  const Peak unnamed = table().peak("A100", "");
  EXPECT_EQ(unnamed.tflops, 312);
  EXPECT_TRUE(unnamed.assumed);
  const Peak without = table().peak("V100", "bf16");  // it has no bf16
  EXPECT_EQ(without.tflops, 125);
  EXPECT_TRUE(without.assumed);
}

TEST(Hardware, every_row_is_whole_and_no_lower_precision_is_slower) {
  EXPECT_GT(table().all().size(), 90);
  for (const Hardware& row : table().all()) {
    EXPECT_EQ(table().find(row.name), &row) << row.name;
    EXPECT_FALSE(row.source.empty()) << row.name;
    EXPECT_FALSE(is_missing(row.peak_tflops[0]) || is_missing(row.bandwidth_gb_s) || is_missing(row.memory_gb));
    for (std::size_t i = 1; i < row.peak_tflops.size(); ++i)
      if (!is_missing(row.peak_tflops[i])) {
        EXPECT_GE(row.peak_tflops[i], row.peak_tflops[0]) << row.name;
      }
  }
}

TEST(Hardware, a_users_own_rows_override_and_add) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "hardware.csv";
  const std::string head = "name,aliases,fp32,tf32,bf16,fp16,fp8,bandwidth_gb_s,memory_gb,source\n";
  std::ofstream(file) << head << "NVIDIA A100 40GB SXM,a100,20,160,300,300,,1555,40,measured here\n"
                      << "Intel Xeon,xeon,1.5,,,,,,,measured here\n";
  HardwareTable own = table();
  own.add(file);
  EXPECT_EQ(own.peak("A100", "bf16").tflops, 300);
  EXPECT_EQ(own.peak("Intel(R) Xeon(R) CPU", "fp32").tflops, 1.5);
  EXPECT_EQ(own.all().size(), table().all().size() + 1);

  std::ofstream(file) << head << "Mine,,fast,,,,,,,me\n";
  EXPECT_THROW(own.add(file), StorageError);
  std::ofstream(file) << "name,peak\n";
  EXPECT_THROW(own.add(file), StorageError);
}

TEST(DeviceCount, is_what_stands_in_front) {
  EXPECT_EQ(device_count("8x NVIDIA H100"), 8);
  EXPECT_EQ(device_count("2xRTX 4090"), 2);
  EXPECT_EQ(device_count("2 x RTX 4090"), 2);
  EXPECT_EQ(device_count("3080"), 1);
  EXPECT_EQ(device_count("NVIDIA A100"), 1);
}

}  // namespace
}  // namespace stepladder
