// The memory of a traced step by use, from the allocator's events.
#include <gtest/gtest.h>

#include <fstream>

#include "storage/traces/trace_file.h"
#include "storage/traces/traced_process.h"
#include "tests/storage/temporary_folder.h"
#include "tests/storage/traces/trace_text.h"

namespace stepladder {
namespace {

std::string memory(double at_us, std::int64_t bytes, std::int64_t total, int address) {
  std::ostringstream text;
  text << R"({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 77, "tid": 77, "ts": )"
       << at_us << R"(, "args": {"Total Allocated": )" << total << R"(, "Bytes": )" << bytes
       << R"(, "Device Id": -1, "Device Type": 0, "Addr": )" << address << "}}";
  return text.str();
}

std::int64_t bytes(const MemoryPoint& point, MemoryUse use) {
  return point.bytes[static_cast<std::size_t>(use)];
}

TEST(TraceMemory, belongs_to_the_part_of_the_step_that_asked_for_it_until_it_is_given_back) {
  const TemporaryFolder folder;
  std::ofstream(folder / "t.json") << trace_of({
      cpu_step(1, 0, 100), op("aten::linear", 0, 40), op("autograd::engine::evaluate_function: X", 50, 20),
      event("user_annotation", "Optimizer.step#SGD.step", "77", 77, 80, 10),
      memory(10, 1000, 5000, 1),   // an activation; 4,000 bytes were there before
      memory(20, 300, 5300, 2),    // another
      memory(30, -300, 5000, 2),   //
      memory(55, 700, 5700, 3),    // a gradient
      memory(60, -1000, 4700, 1),  // the activation isn't needed any more
      memory(85, 50, 4750, 4),     // of the optimiser
      memory(90, -4000, 750, 99),  // something of before
  });
  const TracedProcess process = attribute_all(read_trace(folder / "t.json").front());
  ASSERT_EQ(process.kept.size(), 1U);
  const std::vector<MemoryPoint> points = unpack(process.kept.front().packed).memory;
  ASSERT_EQ(points.size(), 8U);  // and how the step begins
  EXPECT_EQ(bytes(points[0], MemoryUse::before), 4000);
  EXPECT_EQ(points[1].at_ns, 10'000);
  EXPECT_EQ(bytes(points[2], MemoryUse::activations), 1300);
  EXPECT_EQ(points[2].total(), 5300);
  EXPECT_EQ(bytes(points[4], MemoryUse::gradients), 700);
  EXPECT_EQ(bytes(points[5], MemoryUse::activations), 0);
  EXPECT_EQ(bytes(points[7], MemoryUse::optimizer), 50);
  EXPECT_EQ(bytes(points[7], MemoryUse::before), 0);
  EXPECT_EQ(points[7].total(), 750);
}

TEST(TraceMemory, many_changes_are_thinned_and_the_peak_stays) {
  const TemporaryFolder folder;
  std::vector<std::string> events{cpu_step(1, 0, 20'000), op("aten::linear", 0, 19'999)};
  for (int i = 0; i < 9'000; ++i) events.push_back(memory(2 * i, i == 5'003 ? 999'999 : 1, 0, i + 1));
  events.push_back(memory(18'500, -999'999, 0, 5'004));
  std::ofstream(folder / "t.json") << trace_of(events);
  const std::vector<MemoryPoint> points =
      unpack(attribute_all(read_trace(folder / "t.json").front()).kept.front().packed).memory;
  EXPECT_LE(points.size(), StepSlices::most_memory);
  std::int64_t most = 0;
  for (const MemoryPoint& point : points) most = std::max(most, point.total());
  EXPECT_EQ(most, 999'999 + 8'999);
  EXPECT_EQ(points.back().total(), 8'999);
}

}  // namespace
}  // namespace stepladder
