#include "app/host/machine_load.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace stepladder {
namespace {

TEST(MachineLoadReader, ReadsOnAnotherThreadAtMostTwiceASecond) {
  using namespace std::chrono_literals;
  std::atomic<int> readings = 0;
  MachineLoad load;
  MachineLoadReader reader([&] { ++readings; });
  const auto began = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() < began + 1200ms) {
    reader.update(load);
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_GE(readings, 1);
  EXPECT_LE(readings, 3);
}

}  // namespace
}  // namespace stepladder
