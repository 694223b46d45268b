// A quiet machine is never flagged, a busy one is: by readings of /proc/stat that a test makes up.
#include "engine/others_watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "storage/analysis/plausibility.h"
#include "storage/contention.h"

namespace stepladder {
namespace {

constexpr double ticks_a_second = 100;  // as Linux counts
const std::vector<bool> two_cores{true, true};

// Two cores of a machine of three; core 2 isn't this process's. Ticks of user, system and iowait time on each.
std::string proc_stat(std::int64_t user, std::int64_t system, std::int64_t iowait) {
  std::ostringstream text;
  text << "cpu  1 2 3 4 5 6 7 8 0 0\n";
  for (int core = 0; core < 3; ++core) {
    const bool is_foreign = core == 2;
    text << "cpu" << core << ' ' << (is_foreign ? 999'999 : user) << " 0 " << system << " 5000 " << iowait
         << " 0 0 0 0 0\n";
  }
  text << "intr 12345\n";
  return text.str();
}

std::int64_t busy_ticks(std::int64_t user, std::int64_t system, std::int64_t iowait = 0) {
  std::istringstream text(proc_stat(user, system, iowait));
  return busy_ticks_in(text, two_cores);
}

TEST(OthersWatch, CountsBusyTicksOfItsOwnCoresOnly) {
  EXPECT_EQ(busy_ticks(100, 20), 240);
  EXPECT_EQ(busy_ticks(100, 20, 70), 240) << "waiting for a disk is idle";
  std::istringstream empty("");
  EXPECT_EQ(busy_ticks_in(empty, two_cores), 0);
}

// A run of 60 s on both cores, 0.1 s a step, looked at twice a second. Others use this many cores.
Summary measured_beside(double others) {
  constexpr int needed = 2;
  Series series;
  std::vector<SystemMetrics> samples;
  CpuReading before{.busy_ticks = busy_ticks(1000, 100), .steady_s = 50, .run_s = 3};
  double user_ticks = 1000;  // a core
  for (int look = 1; look <= 120; ++look) {
    // The scheduler shares the cores: the run gets what others leave.
    const double own = needed - others;
    user_ticks += 0.5 * ticks_a_second * (own + others) / needed;
    const CpuReading now{.busy_ticks = busy_ticks(std::llround(user_ticks), 100),
                         .steady_s = before.steady_s + 0.5,
                         .run_s = before.run_s + 0.5 * own};
    SystemMetrics sample{.at = 1000 + 0.5 * look};
    sample.contention = use_of_others(before, now, 2, ticks_a_second);
    sample.contention.needed_cores = needed;
    samples.push_back(sample);
    before = now;
  }
  for (int step = 1; step <= 600; ++step)
    series.append({.step = step, .loss = 2, .dt_ms = 100, .tokens = 10, .at = 1000 + 0.1 * step});
  return summarise(series, -1, 10, samples);
}

bool is_flagged_busy(const Summary& summary) {
  for (const Flag& flag : flags_of(Run{.status = RunStatus::finished}, summary, 2, {}))
    if (flag.id == FlagId::busy_machine) return true;
  return false;
}

TEST(OthersWatch, AQuietMachineIsNotFlagged) {
  // The kernel's own work and a blinking caret; counting in hundredths of a second adds to it.
  for (const double others : {0.0, 0.02, 0.05, 0.1, 0.15}) {
    const Summary summary = measured_beside(others);
    EXPECT_GT(summary.watched_steps, 500);
    EXPECT_EQ(summary.disturbed_steps, 0) << others << " cores";
    EXPECT_FALSE(is_flagged_busy(summary)) << others << " cores";
  }
}

TEST(OthersWatch, ABusyMachineIsFlagged) {
  for (const double others : {0.3, 0.7, 1.0, 1.9}) {
    const Summary summary = measured_beside(others);
    EXPECT_GT(summary.disturbed_steps, 500) << others << " cores";
    EXPECT_NEAR(summary.disturbance.other_cores, others, 0.03);
    EXPECT_TRUE(is_flagged_busy(summary)) << others << " cores";
  }
}

TEST(OthersWatch, WhatItCannotTellIsUnknown) {
  const CpuReading before{.busy_ticks = 100, .steady_s = 1, .run_s = 1};
  EXPECT_FALSE(is_known(use_of_others(before, {.busy_ticks = 105, .steady_s = 1.05, .run_s = 1.02}, 2, 100)))
      << "too soon";
  EXPECT_TRUE(is_missing(use_of_others(before, {.busy_ticks = 200, .steady_s = 2, .run_s = 1.5}, 0, 100).other_cores))
      << "a container's limit";
  EXPECT_TRUE(is_missing(use_of_others({}, {.busy_ticks = 0, .steady_s = 2, .run_s = 1.5}, 2, 100).other_cores))
      << "a sandbox without busy times";
  EXPECT_EQ(use_of_others(before, {.busy_ticks = 140, .steady_s = 2, .run_s = 1.5}, 2, 100).other_cores, 0)
      << "never below none";
}

TEST(BusyProcesses, ThoseOfOneNameAreOne) {
  EXPECT_EQ(names_of({{.pid = 1, .name = "ld", .cores = 0.5},
                      {.pid = 2, .name = "cc1plus", .cores = 0.4},
                      {.pid = 3, .name = "cc1plus", .cores = 0.2}}),
            "cc1plus 0.6, ld 0.5");
  EXPECT_EQ(names_of({}), "");
}

}  // namespace
}  // namespace stepladder
