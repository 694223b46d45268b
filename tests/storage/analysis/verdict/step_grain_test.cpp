// Step times that were printed with few digits: the grain, its bias, and intervals that hold the truth nevertheless.
#include "storage/analysis/verdict/step_grain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <random>
#include <utility>
#include <vector>

#include "storage/analysis/compare.h"
#include "storage/analysis/statistics.h"
#include "storage/analysis/summary.h"

namespace stepladder {
namespace {

std::vector<double> steps(double ms, double noise, std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(ms, noise * ms);
  std::vector<double> times(n);
  for (double& time : times) time = normal(random);
  return times;
}

std::vector<double> rounded(std::vector<double> times, double grain) {
  for (double& time : times) time = std::round(time / grain) * grain;
  return times;
}

// The differences of a clock that is printed in whole grains.
std::vector<double> by_clock(const std::vector<double>& times, double grain) {
  std::vector<double> found;
  double clock = 0, last = 0;
  for (const double time : times) {
    clock += time;
    const double printed = std::round(clock / grain) * grain;
    found.push_back(printed - last);
    last = printed;
  }
  return found;
}

TEST(StepGrain, is_the_distance_of_values_that_coincide) {
  EXPECT_EQ(grain_of(steps(53.4, 0.004, 500, 1), ReadFrom::timer).ms, 0) << "measured times never do";
  for (const double grain : {0.1, 0.2, 0.5, 1.0}) {
    const StepGrain found = grain_of(rounded(steps(53.4, 0.01, 1500, 2), grain), ReadFrom::timer);
    EXPECT_NEAR(found.ms, grain, 1e-9);
    EXPECT_TRUE(found.is_coarse);
  }
  EXPECT_FALSE(grain_of(rounded(steps(53.4, 0.002, 1500, 2), 0.01), ReadFrom::timer).is_coarse);
  const std::vector<double> rates(100, 1000 / 18.7);  // "18.7 it/s"
  EXPECT_GE(grain_of(rates, ReadFrom::timer).ms, 0.1 / 18.7 * rates[0] * 0.999);
  for (const auto& [ms, grain] :
       {std::pair{53.0, 1.0}, {50.0, 1.0}, {8.0, 1.0}, {100.0, 10.0}, {128.0, 1.0}, {12.5, 0.1}})
    EXPECT_GE(grain_of(std::vector<double>(100, ms), ReadFrom::timer).ms, grain * 0.999) << ms;
  EXPECT_GT(grain_of(std::vector<double>(100, 53.475935828877), ReadFrom::timer).ms, 0) << "a constant has a grain";
  EXPECT_EQ(grain_of(std::vector<double>(7, 53), ReadFrom::timer).ms, 0) << "too few";
}

TEST(StepGrain, a_clock_adds_up_and_rounded_steps_do_not) {
  const std::vector<double> times = steps(53.4, 0.0001, 1500, 3);
  EXPECT_LT(grain_of(by_clock(times, 1), ReadFrom::clock).bias, 1e-4);
  EXPECT_NEAR(grain_of(rounded(times, 1), ReadFrom::timer).bias, 0.5 / 53, 1e-6);
  EXPECT_LT(grain_of(rounded(steps(53.4, 0.02, 1500, 4), 1), ReadFrom::timer).bias, 1e-4) << "scatter of a whole grain";
  // Outliers are no scatter.
  std::vector<double> outliers = rounded(times, 1);
  for (std::size_t i = 0; i < outliers.size(); i += 40) outliers[i] = 55;
  EXPECT_NEAR(grain_of(outliers, ReadFrom::timer).bias, 0.5 / 53, 1e-6);
}

TEST(StepGrain, pauses_stay_out_of_the_blocks) {
  std::vector<double> times = by_clock(steps(53.4, 0.004, 1500, 5), 1);
  for (std::size_t i = 0; i < times.size(); i += 30) times[i] += 800;
  const StepGrain grain = grain_of(times, ReadFrom::clock);
  EXPECT_NEAR(median_of(resolved_steps(times, grain)), 53.4, 0.05);
}

// Two runs with a known ratio, read with a grain: the interval holds the truth, and never has no width.
TEST(StepGrain, intervals_of_rounded_steps_hold_the_truth) {
  int missed = 0;
  int tried = 0;
  for (const ReadFrom from : {ReadFrom::clock, ReadFrom::timer})
    for (const double ms : {250.3, 100.4, 53.4, 20.3, 8.3})  // printed in whole milliseconds
      for (const double ratio : {1.0, 0.9959, 1.013, 1.05})
        for (const std::size_t n : {60, 1500}) {
          const auto seed = static_cast<std::uint64_t>(tried);
          const auto read = [&](double mean, std::uint64_t of) {
            const std::vector<double> times = steps(mean, 0.004, n, of);
            return from == ReadFrom::clock ? by_clock(times, 1) : rounded(times, 1);
          };
          Series a, b;
          for (const double dt : read(ms, 2 * seed)) a.append({.step = std::ssize(a.step) + 1, .dt_ms = dt});
          for (const double dt : read(ms / ratio, 2 * seed + 1))
            b.append({.step = std::ssize(b.step) + 1, .dt_ms = dt});
          const Summary of_a = summarise(a, -1, 1, {}, from);
          const Summary of_b = summarise(b, -1, 1, {}, from);
          const SpeedUp found = judge_speedup(speedup(of_a, of_b), {.steps = sample_steps(steady_dt_ms(a, of_a), from)},
                                              {.steps = sample_steps(steady_dt_ms(b, of_b), from)});
          ASSERT_TRUE(found.ci95.known());
          EXPECT_LT(found.ci95.low, found.ci95.high);
          ++tried;
          if (found.ci95.low <= ratio && found.ci95.high >= ratio) continue;
          ++missed;
          std::cerr << (from == ReadFrom::clock ? "clock " : "timer ") << ms << " " << ratio << " " << n << " "
                    << found.factor << " " << found.ci95.low << " " << found.ci95.high << "\n";
        }
  EXPECT_LE(missed, tried / 20) << "of " << tried;
}

}  // namespace
}  // namespace stepladder
