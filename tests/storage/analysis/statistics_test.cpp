#include "storage/analysis/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "storage/analysis/judgement.h"

namespace stepladder {
namespace {

// Gaussian numbers that are the same on every platform.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : engine_(seed) {}
  double uniform() { return (static_cast<double>(engine_() >> 11) + 0.5) * 0x1p-53; }
  double gauss() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform()); }

 private:
  std::mt19937_64 engine_;
};

std::vector<double> autoregressive(Noise& noise, std::size_t n, double rho) {
  std::vector<double> values;
  double state = noise.gauss();
  for (std::size_t i = 0; i < n; ++i) {
    values.push_back(state);
    state = rho * state + std::sqrt(1 - rho * rho) * noise.gauss();
  }
  return values;
}

struct SimulatedMachine {
  double noise = 0.01;
  double rho = 0.5;     // correlation of neighbouring steps
  double warmup = 0;    // the first step's excess, which decays over some steps
  double drift = 0;     // from the first step to the last
  double outliers = 0;  // share of steps that something else slowed down
  std::size_t steps = 300;
};

Series simulated(Noise& noise, const SimulatedMachine& machine, double dt_ms) {
  const std::vector<double> errors = autoregressive(noise, machine.steps, machine.rho);
  Series series;
  for (std::size_t i = 0; i < machine.steps; ++i) {
    const auto at = static_cast<double>(i);
    double dt = dt_ms * std::exp(machine.noise * errors[i]) * (1 + machine.warmup * std::exp(-at / 6)) *
                (1 + machine.drift * at / static_cast<double>(machine.steps));
    if (noise.uniform() < machine.outliers) dt *= 1.2 + 2 * noise.uniform();
    series.append({.step = static_cast<std::int64_t>(i) + 1, .dt_ms = dt, .tokens = 1024});
  }
  return series;
}

struct Tally {
  int covered = 0;
  int faster = 0;
  int slower = 0;
};

// Pairs of runs, the second `gain` times as fast, judged as `compare` judges them.
Tally judge_pairs(int pairs, const SimulatedMachine& machine, double gain, std::uint64_t seed) {
  Noise noise(seed);
  const Run run{.tokens_per_step = 1024};
  Tally tally;
  for (int i = 0; i < pairs; ++i) {
    const Series a = simulated(noise, machine, 100 * gain);
    const Series b = simulated(noise, machine, 100);
    const Summary of_a = summarise(a, -1, 1024);
    const Summary of_b = summarise(b, -1, 1024);
    const SpeedUp found =
        judge_speedup(speedup(of_a, of_b), sample_of({&run, &of_a, &a}, {}, 1), sample_of({&run, &of_b, &b}, {}, 1));
    tally.covered += found.ci95.low <= gain && gain <= found.ci95.high ? 1 : 0;
    tally.faster += found.verdict == Verdict::faster ? 1 : 0;
    tally.slower += found.verdict == Verdict::slower ? 1 : 0;
  }
  return tally;
}

TEST(Intervals, cover_the_truth_in_95_of_100_runs_with_everything_that_goes_wrong) {
  const SimulatedMachine machine{.warmup = 2, .drift = 0.01, .outliers = 0.02};
  const Tally tally = judge_pairs(1000, machine, 1.1, 1);
  EXPECT_GE(tally.covered, 930);
  EXPECT_LE(tally.covered, 970);
}

TEST(Intervals, cover_the_truth_whether_or_not_neighbours_are_alike) {
  for (const double rho : {0.0, 0.8}) {
    const Tally tally = judge_pairs(1000, {.rho = rho}, 1.05, 2);
    EXPECT_GE(tally.covered, 930) << rho;
    EXPECT_LE(tally.covered, 970) << rho;
  }
}

TEST(Intervals, cover_the_truth_with_few_steps_that_are_much_alike) {
  for (const std::size_t steps : {60, 100}) {
    for (const SimulatedMachine& machine :
         {SimulatedMachine{.rho = 0.9, .steps = steps},
          SimulatedMachine{.rho = 0.9, .warmup = 2, .drift = 0.01, .outliers = 0.02, .steps = steps}}) {
      const Tally tally = judge_pairs(1000, machine, 1.1, 8);
      EXPECT_GE(tally.covered, 914) << steps;  // 93 and 97 %, plus or minus two standard errors of a share
      EXPECT_LE(tally.covered, 981) << steps;
    }
  }
}

// A machine that is slow or fast for a hundred steps: 1,000 of them are worth five.
TEST(Intervals, cover_the_truth_where_noise_is_slow) {
  const Tally tally = judge_pairs(300, {.rho = 0.99, .steps = 1000}, 1.05, 4);
  EXPECT_GE(tally.covered, 270);  // 92 % of these 300
}

TEST(Verdict, two_equal_machines_are_hardly_ever_told_apart) {
  for (const double noise : {0.01, 0.1}) {
    const Tally tally = judge_pairs(500, {.noise = noise, .warmup = 2, .outliers = 0.02, .steps = 150}, 1, 3);
    EXPECT_LE(tally.faster + tally.slower, 25) << noise;
  }
}

TEST(Verdict, two_percent_at_one_percent_noise_are_found) {
  EXPECT_GE(judge_pairs(500, {.warmup = 2, .outliers = 0.02}, 1.02, 4).faster, 475);
}

TEST(BlockLength, grows_with_the_correlation_of_neighbours) {
  Noise noise(5);
  EXPECT_LT(block_length(autoregressive(noise, 2000, 0)), 4);
  const double some = block_length(autoregressive(noise, 2000, 0.5));
  const double much = block_length(autoregressive(noise, 2000, 0.9));
  EXPECT_GT(some, 6);
  EXPECT_LT(some, 30);
  EXPECT_GT(much, 1.5 * some);
  EXPECT_EQ(block_length(std::vector<double>(50, 3.0)), 1);
  EXPECT_EQ(block_length(std::vector<double>{1, 2}), 1);
}

TEST(MedianSample, error_is_that_of_a_median_of_independent_steps) {
  Noise noise(6);
  double squares = 0;
  for (int i = 0; i < 20; ++i) {
    std::vector<double> values = autoregressive(noise, 400, 0);
    for (double& x : values) x = 50 * std::exp(0.02 * x);
    const double error = sample_median(values).log_error;
    squares += error * error / 20;
  }
  // sqrt(pi / 2) sigma / sqrt(n), Gaussian noise.
  EXPECT_NEAR(std::sqrt(squares), 1.2533 * 0.02 / 20, 0.15 * 1.2533 * 0.02 / 20);
}

TEST(MedianSample, is_the_same_each_time_and_tells_of_drift) {
  Noise noise(7);
  const Series series = simulated(noise, {.drift = 0.1, .steps = 200}, 10);
  const MedianSample sample = sample_median(series.dt_ms);
  EXPECT_EQ(sample.log_deviations, sample_median(series.dt_ms).log_deviations);
  EXPECT_NEAR(sample.trend, std::log(1.1), 0.01);
  EXPECT_EQ(sample.steps, 200);
  const Interval interval = median_interval(sample);
  EXPECT_LT(interval.low, sample.median);
  EXPECT_GT(interval.high, sample.median);
}

TEST(MedianSample, needs_a_few_steps_and_takes_only_times) {
  EXPECT_FALSE(sample_median(std::vector<double>{1, 2, 3, 4, 5, 6, 7}).known());
  EXPECT_FALSE(median_interval(sample_median({})).known());
  const std::vector<double> values{10, 11, missing, 12, -3, INFINITY, 10, 11, 12, 10, 11, 12};
  const MedianSample sample = sample_median(values);
  EXPECT_EQ(sample.steps, 9);
  EXPECT_EQ(sample.median, 11);
  const MedianSample equal = sample_median(std::vector<double>(20, 4.0));
  EXPECT_EQ(equal.log_error, 0);
  EXPECT_EQ(median_interval(equal).high, 4);
}

TEST(Trend, does_not_follow_outliers) {
  std::vector<double> values;
  for (int i = 0; i < 100; ++i) values.push_back(10 * std::exp(0.001 * i) * (i % 2 ? 1.001 : 0.999));
  values[98] = 500;
  EXPECT_NEAR(log_trend(values), 0.001, 0.0002);
}

TEST(StudentT, is_that_of_the_tables) {
  for (const auto& [freedom, point] : std::vector<std::pair<double, double>>{
           {1, 12.706}, {2, 4.303}, {3, 3.182}, {4, 2.776}, {5, 2.571}, {8, 2.306}, {10, 2.228}, {30, 2.042}})
    EXPECT_NEAR(t_critical(freedom), point, 0.004) << freedom;
}

}  // namespace
}  // namespace stepladder
