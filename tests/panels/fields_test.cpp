#include "app/desktop/fields.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace stepladder {
namespace {

TEST(ReadCount, TakesNumbersAsPeopleTypeThem) {
  EXPECT_EQ(read_count("524288"), 524288);
  EXPECT_EQ(read_count(" 524,288 "), 524288);
  EXPECT_EQ(read_count("124M"), 124'000'000);
  EXPECT_EQ(read_count("0.5 M"), 500'000);
  EXPECT_EQ(read_count("1.5b"), 1'500'000'000);
  EXPECT_EQ(read_count("64 x 1024"), 65536);
  EXPECT_EQ(read_count("8*4*1_024"), 32768);
  for (const char* text : {"", " ", "many", "0", "-3", "1.5", "3 x", "x 3", "1e99", "nan", "12 apples", "0.0001k"})
    EXPECT_EQ(read_count(text), std::nullopt) << text;
  EXPECT_EQ(read_number("1.5"), 1.5);
  EXPECT_EQ(read_number("inf"), std::nullopt);
}

TEST(PlainPath, UndoesWhatShellsAndFileManagersAdd) {
  EXPECT_EQ(plain_path("  /tmp/run.log\n"), "/tmp/run.log");
  EXPECT_EQ(plain_path("'/tmp/a b'"), "/tmp/a b");
  EXPECT_EQ(plain_path("file:///tmp/a%20b"), "/tmp/a b");
  EXPECT_EQ(plain_path("file:///tmp/100%"), "/tmp/100%");
  EXPECT_EQ(plain_path("/tmp/100%20b"), "/tmp/100%20b");
  EXPECT_EQ(plain_path("~/runs"), std::string(std::getenv("HOME") ? std::getenv("HOME") : "~") + "/runs");
  EXPECT_EQ(plain_path("~other"), "~other");
  EXPECT_EQ(plain_path("   "), "");
}

TEST(HardwareMatches, APartOfTheNameOrAnAliasInAnyCase) {
  const Hardware hardware{.name = "NVIDIA GeForce RTX 4090", .aliases = {"4090"}};
  EXPECT_TRUE(hardware_matches(hardware, "rtx 40"));
  EXPECT_TRUE(hardware_matches(hardware, ""));
  EXPECT_FALSE(hardware_matches(hardware, "a100"));
}

}  // namespace
}  // namespace stepladder
