#include "engine/system_metrics.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/engine/fake_nvml.h"

namespace stepladder {
namespace {

constexpr const char* no_library = "libstepladder-no-such-library.so";

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

TEST(SystemMonitor, WithoutAGpuOnlyTheGpusHalfIsMissing) {
  SystemMonitor monitor(0, no_library);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const SystemMetrics sample = monitor.sample();
  EXPECT_NEAR(sample.at, unix_now(), 5);
  EXPECT_GE(sample.cpu_load, 0);
  EXPECT_LE(sample.cpu_load, 1);
  EXPECT_GE(sample.process_cores, 0);
  EXPECT_GT(sample.resident_bytes, 1 << 20);
  EXPECT_TRUE(is_missing(sample.gpu_clock_mhz));
  EXPECT_TRUE(is_missing(sample.gpu_power_w));
  EXPECT_TRUE(is_missing(sample.gpu_temperature_c));
  EXPECT_TRUE(is_missing(sample.gpu_load));
  EXPECT_EQ(sample.gpu_memory_bytes, 0);
  EXPECT_EQ(sample.throttle_reason, "");
}

TEST(SystemMonitor, TwoSamplesWithinATickHaveNoMachineLoad) {
  SystemMonitor monitor(-1);
  int missing_loads = 0;
  for (int i = 0; i < 200; ++i) {
    const double load = monitor.sample().cpu_load;
    if (is_missing(load)) {
      ++missing_loads;
    } else {
      EXPECT_GE(load, 0);
      EXPECT_LE(load, 1);
    }
  }
  EXPECT_GT(missing_loads, 0);
}

// A loop's CPU time is its thread's clock, even on a busy machine.
TEST(SystemMonitor, ABusyLoopShows) {
  using namespace std::chrono;
  std::jthread([] {
    become_run_thread();
    SystemMonitor monitor(-1);
    std::this_thread::sleep_for(milliseconds(200));
    const double idle = monitor.sample().process_cores;
    const auto begin = steady_clock::now();
    const double cpu_begin = cpu_seconds();
    while (cpu_seconds() - cpu_begin < 0.2) continue;
    const SystemMetrics busy = monitor.sample();
    const double expected = (cpu_seconds() - cpu_begin) / duration<double>(steady_clock::now() - begin).count();
    EXPECT_NEAR(busy.process_cores, expected, 0.1 * expected);
    EXPECT_GT(busy.process_cores, idle);
    EXPECT_GT(busy.cpu_load, 0);
  });
}

TEST(SystemMonitor, MemoryThatIsTakenShows) {
  SystemMonitor monitor(-1);
  const std::int64_t before = monitor.sample().resident_bytes;
  std::int64_t during = 0;
  {
    const std::vector<char> block(64 << 20, 'x');
    during = monitor.sample().resident_bytes;
    EXPECT_EQ(block.back(), 'x');
  }
  EXPECT_GT(during, before + (50 << 20));
  EXPECT_GE(peak_resident_bytes(), during - (8 << 20));  // the kernel counts the two slightly differently
#ifndef __SANITIZE_ADDRESS__                             // which keeps freed memory for a while
  EXPECT_LT(monitor.sample().resident_bytes, during - (50 << 20));
#endif
}

class FakeGpu : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("CUDA_VISIBLE_DEVICES");
    library_ = dlopen(STEPLADDER_FAKE_NVML, RTLD_NOW);
    ASSERT_NE(library_, nullptr) << dlerror();
    fake_ = static_cast<FakeNvml*>(dlsym(library_, "fake_nvml"));
    ASSERT_NE(fake_, nullptr);
    *fake_ = {};
  }
  void TearDown() override {
    unsetenv("CUDA_VISIBLE_DEVICES");
    EXPECT_EQ(fake_->open, 0) << "opened and not shut down";
    dlclose(library_);
  }

  static SystemMetrics sample(int gpu_index = 0) { return SystemMonitor(gpu_index, STEPLADDER_FAKE_NVML).sample(); }
  std::string reason(unsigned long long bits) const {
    fake_->reasons = bits;
    return sample().throttle_reason;
  }

  void* library_ = nullptr;
  FakeNvml* fake_ = nullptr;
};

TEST_F(FakeGpu, EveryReadingHasItsUnit) {
  const SystemMetrics read = sample();
  EXPECT_EQ(read.gpu_clock_mhz, 1400);
  EXPECT_EQ(read.gpu_power_w, 250.5);
  EXPECT_EQ(read.gpu_temperature_c, 60);
  EXPECT_EQ(read.gpu_load, 0.87);
  EXPECT_EQ(read.gpu_memory_bytes, std::int64_t{30} << 30);
  EXPECT_EQ(read.throttle_reason, "");
  EXPECT_EQ(sample(1).gpu_clock_mhz, 1500);
}

TEST_F(FakeGpu, IsTheOneThatCudaMeans) {
  const auto clock = [](int gpu_index) {
    return SystemMonitor(gpu_index, STEPLADDER_FAKE_NVML, {}, STEPLADDER_FAKE_NVML).sample().gpu_clock_mhz;
  };
  EXPECT_EQ(clock(0), 1400);  // the driver isn't used here
  fake_->cuda_order = true;
  EXPECT_EQ(clock(0), 1500);
  EXPECT_EQ(clock(1), 1400);
}

TEST_F(FakeGpu, HasTwoNumbers) {
  const auto numbers = [] { return card_numbers(2, STEPLADDER_FAKE_NVML, STEPLADDER_FAKE_NVML); };
  EXPECT_EQ(numbers().at(0).pci_address, "");  // the driver isn't used here
  EXPECT_EQ(numbers().at(0).nvml, -1);
  fake_->cuda_order = true;
  ASSERT_EQ(numbers().size(), 2u);
  for (const auto& [cuda, nvml, name] : {std::tuple(0, 1, "Card 1"), std::tuple(1, 0, "Card 0")}) {
    const CardNumber number = numbers()[static_cast<std::size_t>(cuda)];
    EXPECT_EQ(number.cuda, cuda);
    EXPECT_EQ(number.nvml, nvml);
    EXPECT_EQ(number.name, name);
  }
  EXPECT_EQ(fake_->open, 0);
  EXPECT_EQ(card_numbers(1, no_library, STEPLADDER_FAKE_NVML).at(0).nvml, -1);
}

TEST_F(FakeGpu, ThrottleReasonsInWords) {
  EXPECT_EQ(reason(0), "");
  EXPECT_EQ(reason(0x1), "");  // idle
  EXPECT_EQ(reason(0x2), "clock set by hand");
  EXPECT_EQ(reason(0x4), "power cap");
  EXPECT_EQ(reason(0x8), "hardware slowdown");
  EXPECT_EQ(reason(0x10), "sync boost");
  EXPECT_EQ(reason(0x20), "hot");
  EXPECT_EQ(reason(0x8 | 0x40), "too hot");
  EXPECT_EQ(reason(0x8 | 0x80), "power brake");
  EXPECT_EQ(reason(0x100), "display clock");
  EXPECT_EQ(reason(0x1 | 0x4 | 0x20), "power cap, hot");
  EXPECT_EQ(reason(1ull << 40), "");  // of a later driver
}

TEST_F(FakeGpu, OlderDriversAreAskedByTheOlderName) {
  fake_->event_reasons = false;
  EXPECT_EQ(reason(0x4), "power cap");
}

TEST_F(FakeGpu, WhatTheDriverCannotTellIsMissing) {
  fake_->error = 3;
  fake_->reasons = 0x4;
  const SystemMetrics read = sample();
  EXPECT_TRUE(is_missing(read.gpu_clock_mhz));
  EXPECT_TRUE(is_missing(read.gpu_power_w));
  EXPECT_TRUE(is_missing(read.gpu_temperature_c));
  EXPECT_TRUE(is_missing(read.gpu_load));
  EXPECT_EQ(read.gpu_memory_bytes, 0);
  EXPECT_EQ(read.throttle_reason, "");
  EXPECT_GT(read.resident_bytes, 0);
}

TEST_F(FakeGpu, NoDriverAndNoSuchGpu) {
  EXPECT_TRUE(is_missing(sample(2).gpu_clock_mhz));
  EXPECT_TRUE(is_missing(sample(-1).gpu_clock_mhz));
  fake_->init_error = 9;  // NVML_ERROR_DRIVER_NOT_LOADED
  EXPECT_TRUE(is_missing(sample(0).gpu_clock_mhz));
}

TEST_F(FakeGpu, OtherProcessesOnIt) {
  const auto own = static_cast<unsigned>(getpid());
  EXPECT_TRUE(is_missing(sample().contention.other_gpu_load)) << "no process is listed";
  fake_->process_count = 1;
  fake_->processes[0] = {own, 90};
  EXPECT_EQ(sample().contention.other_gpu_load, 0);
  fake_->process_count = 2;
  fake_->processes[1] = {own + 1, 40};
  SystemMonitor monitor(0, STEPLADDER_FAKE_NVML);
  EXPECT_EQ(monitor.sample().contention.other_gpu_load, 0.4);
  EXPECT_EQ(fake_->asked_since, 0u);
  monitor.sample();
  EXPECT_EQ(fake_->asked_since, 1001u) << "only what is new";
  EXPECT_EQ(SystemMonitor(0, STEPLADDER_FAKE_NVML, {getpid() + 1}).sample().contention.other_gpu_load, 0)
      << "a process of the same run";
  fake_->processes[0] = {own + 2, 90};
  EXPECT_TRUE(is_missing(sample().contention.other_gpu_load)) << "in a container, whose numbers differ";
  fake_->processes[0] = {own, 90};
  fake_->error = 3;
  EXPECT_TRUE(is_missing(sample().contention.other_gpu_load));
}

TEST_F(FakeGpu, CountsAsCudaDoes) {
  const auto clock_with = [&](const char* visible, int index) {
    setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    return sample(index).gpu_clock_mhz;
  };
  EXPECT_EQ(clock_with("1", 0), 1500);
  EXPECT_EQ(clock_with("1,0", 1), 1400);
  EXPECT_EQ(clock_with("GPU-one", 0), 1500);
  EXPECT_TRUE(is_missing(clock_with("GPU-other", 0)));
  EXPECT_TRUE(is_missing(clock_with("1", 1)));
  EXPECT_TRUE(is_missing(clock_with("", 0)));
  EXPECT_TRUE(is_missing(clock_with("0,-1,1", 2)));
}

}  // namespace
}  // namespace stepladder
