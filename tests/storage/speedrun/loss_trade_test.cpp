#include "storage/speedrun/loss_trade.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace stepladder {
namespace {

RecordPool pool_at(std::int64_t steps, const std::vector<double>& losses, const std::vector<double>& times_s) {
  RecordPool pool;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    SpeedrunLog log;
    log.final = {steps, losses[i], times_s[i] * 1e3};
    pool.logs.push_back(std::move(log));
  }
  return pool;
}

const RecordPool shorter = pool_at(1700, {3.2812, 3.2820, 3.2808}, {99.9, 100.1, 100.0});
const RecordPool longer = pool_at(1800, {3.2771, 3.2779, 3.2762}, {105.8, 106.1, 106.1});

TEST(LossTrade, gives_loss_per_step_and_the_time_at_a_loss) {
  const LossTrade trade = loss_trade(longer, shorter, nullptr, 3.28);  // in either order
  EXPECT_EQ(trade.fewer.steps, 1700);
  const double gap = (3.2771 + 3.2779 + 3.2762) / 3 - (3.2812 + 3.2820 + 3.2808) / 3;
  EXPECT_NEAR(trade.metric_per_step.value, gap / 100, 1e-12);
  EXPECT_NEAR(trade.s_per_step.value, 0.06, 1e-9);
  EXPECT_NEAR(trade.s_per_metric.value, 6 / gap, 1e-6);
  const double part = (3.28 - (3.2812 + 3.2820 + 3.2808) / 3) / gap;
  EXPECT_NEAR(trade.steps_at.value, 1700 + 100 * part, 1e-6);
  EXPECT_NEAR(trade.time_at_s.value, 100 + 6 * part, 1e-6);
  EXPECT_FALSE(trade.extrapolated);
  for (const Estimate& it :
       {trade.metric_per_step, trade.s_per_step, trade.s_per_metric, trade.steps_at, trade.time_at_s}) {
    EXPECT_LT(it.ci95.low, it.value);
    EXPECT_GT(it.ci95.high, it.value);
  }
  EXPECT_TRUE(loss_trade(shorter, longer, nullptr, 3.20).extrapolated);
}

TEST(LossTrade, compares_a_candidate_at_its_own_loss) {
  // The candidate is slower than the short pool in seconds, and faster than the script would be at its loss.
  const RecordPool candidate = pool_at(1750, {3.2770, 3.2768, 3.2773}, {101.9, 102.0, 102.1});
  const LossTrade trade = loss_trade(shorter, longer, &candidate, 3.3);
  EXPECT_NEAR(trade.at, 3.27703333, 1e-6);
  EXPECT_NEAR(trade.speedup_at.value, trade.time_at_s.value / 102, 1e-9);
  EXPECT_GT(trade.speedup_at.ci95.low, 1);
}

TEST(LossTrade, says_what_is_far_beyond_the_pools) {
  const auto at = [](double loss) { return loss_trade(shorter, longer, nullptr, loss); };
  EXPECT_FALSE(at(3.2785).is_far_beyond);
  EXPECT_FALSE(at(3.2760).is_far_beyond);
  EXPECT_TRUE(at(3.2760).extrapolated);
  EXPECT_TRUE(at(3.2700).is_far_beyond);
  EXPECT_TRUE(at(3.2900).is_far_beyond);
}

TEST(LossTrade, claims_nothing_that_the_pools_cannot_show) {
  const RecordPool level = pool_at(1800, {3.2815, 3.2809, 3.2818}, {105.8, 106.1, 106.1});
  const LossTrade unclear = loss_trade(shorter, level, nullptr, 3.28);
  EXPECT_TRUE(is_missing(unclear.time_at_s.value));
  EXPECT_NE(unclear.note.find("don't differ clearly"), std::string::npos);
  const RecordPool single = pool_at(1800, {3.277}, {106});
  const LossTrade alone = loss_trade(shorter, single, nullptr, 3.28);
  EXPECT_FALSE(alone.metric_per_step.ci95.known());
  EXPECT_FALSE(alone.note.empty());
  const RecordPool untimed = pool_at(1800, {3.2771, 3.2779, 3.2762}, {missing, 1, 1});
  EXPECT_TRUE(is_missing(loss_trade(shorter, untimed, nullptr, 3.28).time_at_s.value));
  EXPECT_THROW(loss_trade(shorter, shorter, nullptr, 3.28), TradeError);
  EXPECT_THROW(loss_trade(shorter, {}, nullptr, 3.28), TradeError);
  RecordPool mixed = longer;
  mixed.logs.front().final.step = 1799;
  EXPECT_THROW(loss_trade(shorter, mixed, nullptr, 3.28), TradeError);
  EXPECT_THROW(loss_trade(shorter, pool_at(1800, {3.2, NAN}, {1, 1}), nullptr, 3.28), TradeError);
}

TEST(LossTrade, intervals_cover_the_truth) {
  std::mt19937_64 random(7);
  const auto draw = [&](int n, double mean, double std) {
    std::normal_distribution<double> value(mean, std);
    std::vector<double> values(static_cast<std::size_t>(n));
    for (double& it : values) it = value(random);
    return values;
  };
  // -0.00005 a step, 0.06 s a step; at 3.28 the script needs 1720 steps and 101.2 s.
  int steps = 0, time = 0, factor = 0;
  constexpr int trials = 4'000;
  for (int i = 0; i < trials; ++i) {
    const RecordPool few = pool_at(1700, draw(8, 3.2810, 0.0013), draw(8, 100, 0.2));
    const RecordPool many = pool_at(1900, draw(6, 3.2710, 0.0013), draw(6, 112, 0.2));
    const RecordPool candidate = pool_at(1600, draw(10, 3.2780, 0.0013), draw(10, 100, 0.2));  // the script: 103.6 s
    const LossTrade at = loss_trade(few, many, nullptr, 3.28);
    const LossTrade against = loss_trade(few, many, &candidate, missing);
    const auto covers = [](const Estimate& it, double truth) { return it.ci95.low < truth && truth < it.ci95.high; };
    steps += covers(at.metric_per_step, -0.00005);
    time += covers(at.time_at_s, 101.2);
    factor += covers(against.speedup_at, 1.036);
  }
  for (const int covered : {steps, time, factor}) {
    EXPECT_GT(covered, 0.94 * trials);
    EXPECT_LT(covered, 0.965 * trials);
  }
}

}  // namespace
}  // namespace stepladder
