// The spread between runs that a project's repeats teach, and for which runs it counts.
#include "storage/analysis/verdict/run_spread.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace stepladder {
namespace {

RunAndSummary repeat(LadderId ladder, int number, const char* hardware, double dt_ms) {
  RunAndSummary each;
  each.run = {.ladder = ladder, .rung = 0, .repeat = number, .status = RunStatus::finished, .hardware = hardware};
  each.summary.dt_ms_median = dt_ms;
  return each;
}

TEST(RunSpread, IsLearntOnTheSameHardwareOnly) {
  SpreadTable table;
  table.learn_from(std::vector{repeat(1, 0, "NVIDIA A100", 100), repeat(1, 1, "NVIDIA A100", 108)});
  EXPECT_EQ(table.step_time({.hardware = "NVIDIA A100"}, {}).from, SpreadFrom::project);
  EXPECT_FALSE(table.step_time({.hardware = "NVIDIA H100"}, {}).known());
  EXPECT_FALSE(table.step_time({}, {}).known());
}

// Two logs that don't name their hardware may come from two machines; those of one ladder don't.
TEST(RunSpread, UnknownHardwareIsThatOfTheSameLadder) {
  SpreadTable table;
  table.learn_from(std::vector{repeat(1, 0, "", 5), repeat(1, 1, "", 5.4)});
  EXPECT_TRUE(table.step_time({.ladder = 1}, {}).known());
  EXPECT_FALSE(table.step_time({.ladder = 2}, {}).known());
  EXPECT_FALSE(table.step_time({}, {}).known());
}

// Public repeats are those of servers' cards; another card may be a desktop's, whose clocks follow its temperature.
TEST(RunSpread, APriorOfServersCardsIsNotThatOfOthers) {
  const SpreadTable table = SpreadTable::read(std::string(STEPLADDER_SOURCE_DIR) + "/assets/spread.csv");
  const auto deviation = [&](const char* hardware) {
    Summary summary;
    summary.dt_ms_median = 100;
    return std::sqrt(table.step_time({.device = "cuda", .hardware = hardware}, summary).variance());
  };
  EXPECT_LT(deviation("NVIDIA H100 80GB HBM3"), 0.002);
  EXPECT_GT(deviation("NVIDIA GeForce RTX 3080"), 0.005);
}

}  // namespace
}  // namespace stepladder
