// What of a step's memory the window and the report draw.
#include "app/profile/slice_layout.h"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

TEST(SliceLayout, a_column_of_memory_has_its_highest_moment) {
  StepSlices step{.length_ns = 100};
  const auto at = [](std::int64_t ns, std::int64_t activations) {
    MemoryPoint point{.at_ns = ns};
    point.bytes[static_cast<std::size_t>(MemoryUse::activations)] = activations;
    return point;
  };
  step.memory = {at(10, 5), at(30, 9), at(32, 1), at(80, 2)};
  EXPECT_EQ(memory_peak(step).total(), 9);
  std::vector<std::int64_t> drawn;
  for (const MemoryPoint* each : memory_columns(step, {.from_ns = 0, .to_ns = 120}, 6))
    drawn.push_back(each ? each->total() : -1);
  EXPECT_EQ(drawn, (std::vector<std::int64_t>{5, 9, 1, 1, 2, -1})) << "nothing is known after the step";
  EXPECT_EQ(memory_columns(step, {.from_ns = 0, .to_ns = 10}, 1).front(), nullptr) << "nor before the first moment";
}

}  // namespace
}  // namespace stepladder
