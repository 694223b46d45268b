#include "storage/analysis/hardware.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/storage/analysis/hardware_table.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

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

TEST(Hardware, names_differ_only_if_they_surely_name_two_devices) {
  EXPECT_TRUE(table().differ("NVIDIA GeForce RTX 3080", "NVIDIA H100 80GB HBM3"));
  EXPECT_FALSE(table().differ("RTX 3080", "RTX 3080 Ti")) << "a name that says less may be the same";
  EXPECT_TRUE(table().differ("NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB"));
  EXPECT_TRUE(table().differ("Unheard-of X1", "Unheard-of X2")) << "of no row";
  EXPECT_FALSE(table().differ("8x NVIDIA H100", "NVIDIA H100 80GB HBM3"));
  EXPECT_FALSE(table().differ("H100 SXM", "NVIDIA H100 80GB HBM3")) << "of one row";
  EXPECT_FALSE(table().differ("", "NVIDIA H100 80GB HBM3"));
}

TEST(Hardware, peaks_are_dense_and_by_precision) {
  EXPECT_EQ(table().peak("A100", "bfloat16").tflops, 312);
  EXPECT_EQ(table().peak("A100", "tensorfloat32").tflops, 156);
  EXPECT_EQ(table().peak("A100", "float32").tflops, 19.5);
  EXPECT_EQ(table().peak("3080", "bf16").tflops, 59.5);
  EXPECT_EQ(table().peak("NVIDIA GB300", "bf16").tflops, 2500);
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

// Figures with sparsity, or with fp16 instead of fp32 accumulation, are twice these.
TEST(Hardware, tensor_cores_are_a_fixed_multiple_of_float32) {
  const auto ratio = [](const Hardware& row, Precision precision) {
    return row.peak_tflops[static_cast<std::size_t>(precision)] / row.peak_tflops[0];
  };
  int geforces = 0, workstations = 0;
  for (const Hardware& row : table().all()) {
    if (is_missing(row.peak_tflops[2])) continue;  // before Ampere
    const bool geforce = row.name.starts_with("NVIDIA GeForce");
    if (!geforce && !row.name.starts_with("NVIDIA RTX")) continue;
    const double rate = geforce ? 1 : 2;
    EXPECT_NEAR(ratio(row, Precision::tf32), rate, 0.02) << row.name;
    EXPECT_NEAR(ratio(row, Precision::bf16), 2 * rate, 0.04) << row.name;
    EXPECT_EQ(row.peak_tflops[2], row.peak_tflops[3]) << row.name;
    if (!is_missing(row.peak_tflops[4])) {
      EXPECT_NEAR(ratio(row, Precision::fp8), 4 * rate, 0.08) << row.name;
    }
    ++(geforce ? geforces : workstations);
  }
  EXPECT_GE(geforces, 25);
  EXPECT_GE(workstations, 9);
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

TEST(Hardware, a_broken_line_of_the_users_file_is_reported_and_left_out) {
  const TemporaryFolder folder;
  ASSERT_EQ(::setenv("XDG_CONFIG_HOME", folder.path().c_str(), 1), 0);
  const auto file = HardwareTable::user_file();
  std::filesystem::create_directories(file.parent_path());
  const std::string head = "name,aliases,fp32,tf32,bf16,fp16,fp8,bandwidth_gb_s,memory_gb,source\n";
  const auto load = [] { return HardwareTable::load(std::string(STEPLADDER_SOURCE_DIR) + "/assets"); };
  std::ofstream(file) << head << "One card,,1,,,,,,,me\nMine,,fast,,,,,,,me\nShort,1\n,,1,,,,,,,me\nLast,,2,,,,,,,me\n";
  const HardwareTable own = load();
  EXPECT_EQ(own.all().size(), table().all().size() + 2);
  EXPECT_EQ(own.peak("Last", "fp32").tflops, 2);
  ASSERT_EQ(own.problems().size(), 3u);
  EXPECT_EQ(own.problems()[0], file.string() + ", line 3, has 'fast' instead of a number; this line is ignored");
  EXPECT_NE(own.problems()[1].find("line 4, has 2 fields instead of 10"), std::string::npos);
  EXPECT_NE(own.problems()[2].find("line 5, names no device"), std::string::npos);
  std::ofstream(file) << "name,peak\n";
  ASSERT_EQ(load().problems().size(), 1u);
  EXPECT_TRUE(load().problems()[0].ends_with("; the file is ignored")) << load().problems()[0];
  EXPECT_EQ(load().all().size(), table().all().size());
  ::unsetenv("XDG_CONFIG_HOME");
}

TEST(Hardware, a_machine_measured_as_a_whole_is_one_device_and_no_other) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "hardware.csv";
  const Hardware measured{.name = "2 x Intel Xeon",
                          .peak_tflops = {0.25, missing, 1.5, missing, missing},
                          .bandwidth_gb_s = 21.456,
                          .source = "measured here"};
  std::ofstream(file) << with_row("", measured);
  HardwareTable own = table();
  own.add(file);
  EXPECT_EQ(own.peak("2 x Intel Xeon", "bf16").total_tflops(), 1.5);
  EXPECT_EQ(own.peak("2 x Intel Xeon", "bf16").devices, 1);
  EXPECT_EQ(own.find("2 x Intel Xeon")->bandwidth_gb_s, 21.46);
  EXPECT_EQ(own.find(own.all().back().name), &own.all().back());
  for (const char* other : {"4 x Intel Xeon", "Intel Xeon", "2 x Intel Xeon Platinum 8480C", "12 x Intel Xeon"})
    EXPECT_EQ(own.find(other), nullptr) << other;
  EXPECT_EQ(own.peak("2 x A100", "bf16").total_tflops(), 624);
}

TEST(Hardware, a_row_replaces_its_own_and_leaves_the_others) {
  const std::string head = "name,aliases,fp32,tf32,bf16,fp16,fp8,bandwidth_gb_s,memory_gb,source\n";
  const Hardware row{.name = "Mine",
                     .aliases = {"mine", "my own"},
                     .peak_tflops = {2, missing, missing, missing, missing},
                     .source = "measured here"};
  const std::string line = "Mine,mine|my own,2,,,,,,,measured here\n";
  EXPECT_EQ(with_row("", row), head + line);
  EXPECT_EQ(with_row("# only a comment\n", row), "# only a comment\n" + head + line);
  EXPECT_EQ(with_row(head + "Mine,,1,,,,,,,old\n# kept\nMine too,,1,,,,,,,kept", row),
            head + "# kept\nMine too,,1,,,,,,,kept\n" + line);
  for (const char* name : {"Mine, too", "Mine\n", "#Mine"})
    EXPECT_THROW(with_row("", {.name = name, .source = "x"}), StorageError) << name;
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
