#include "engine/trainer/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace stepladder {
namespace {

TEST(Safetensors, HeaderAndBytes) {
  const auto file =
      std::filesystem::temp_directory_path() / ("stepladder-" + std::to_string(getpid()) + ".safetensors");
  write_safetensors(file, {{"a", at::arange(6, at::kFloat).view({2, 3}).t()},  // not contiguous
                           {"b", at::tensor({7, 8}, at::kLong)}});
  std::ifstream in(file, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::filesystem::remove(file);

  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  EXPECT_EQ(header["a"], (nlohmann::json{{"dtype", "F32"}, {"shape", {3, 2}}, {"data_offsets", {0, 24}}}));
  EXPECT_EQ(header["b"], (nlohmann::json{{"dtype", "I64"}, {"shape", {2}}, {"data_offsets", {24, 40}}}));
  ASSERT_EQ(bytes.size(), 8 + length + 40);
  float values[6];
  std::memcpy(values, bytes.data() + 8 + length, sizeof values);
  const float expected[6] = {0, 3, 1, 4, 2, 5};
  EXPECT_EQ(std::memcmp(values, expected, sizeof values), 0);
}

TEST(Safetensors, AFolderThatIsNotThereIsASentence) {
  try {
    write_safetensors("/nowhere/x.safetensors", {{"a", at::zeros({1})}});
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "/nowhere/x.safetensors.part cannot be written: No such file or directory");
  }
}

}  // namespace
}  // namespace stepladder
