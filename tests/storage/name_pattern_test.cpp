#include "storage/name_pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace stepladder {
namespace {

TEST(NaturalOrder, NumbersInNamesCountAsNumbers) {
  const std::vector<std::string> sorted = {"",
                                           "10.0.0.9",
                                           "10.0.0.10",
                                           "a",
                                           "a01",
                                           "a1",
                                           "a2b1",
                                           "a2b10",
                                           "a10b1",
                                           "gpu-9",
                                           "gpu-10",
                                           "node2",
                                           "node10",
                                           "node10b",
                                           "node11",
                                           "nodes",
                                           "x99999999999999999999",
                                           "x100000000000000000000"};
  std::mt19937 random(7);
  for (int i = 0; i < 20; ++i) {
    std::vector<std::string> names = sorted;
    std::shuffle(names.begin(), names.end(), random);
    std::sort(names.begin(), names.end(), naturally_before);
    EXPECT_EQ(names, sorted);
  }
  for (const std::string& name : sorted) EXPECT_FALSE(naturally_before(name, name)) << name;
}

TEST(ValueOrder, NumbersComeFirstAndBySize) {
  std::vector<std::string> values{"adamw", "0.1", "16", "1e-4", "128", "8", "0.01", "muon", "-1", "lion10", "lion2"};
  std::ranges::sort(values, value_before);
  EXPECT_EQ(values, (std::vector<std::string>{"-1", "1e-4", "0.01", "0.1", "8", "16", "128", "adamw", "lion2", "lion10",
                                              "muon"}));
}

}  // namespace
}  // namespace stepladder
