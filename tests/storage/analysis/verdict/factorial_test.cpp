// Parts of a change whose effects are known: which design tells them apart, and what the fit says of noise.
#include "storage/analysis/verdict/factorial.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace stepladder {
namespace {

double product_sum(const std::vector<PartSet>& cells, std::size_t a, std::size_t b) {
  double sum = 0;
  for (const PartSet& cell : cells) sum += cell[a] == cell[b] ? 1 : -1;
  return sum;
}

TEST(Factorial, EachDesignIsBalancedAndNoTwoPartsGoTogether) {
  for (std::size_t parts = 1; parts <= most_parts; ++parts) {
    const std::vector<PartSet> cells = fractional_design(parts);
    EXPECT_EQ(cells.size(), parts <= 3 ? 8u : parts == 4 ? 16u : parts <= 11 ? 12u : 20u);
    for (std::size_t a = 0; a < parts; ++a) {
      std::size_t on = 0;
      for (const PartSet& cell : cells) on += cell[a];
      EXPECT_EQ(2 * on, cells.size()) << parts;
      for (std::size_t b = 0; b < a; ++b) EXPECT_EQ(product_sum(cells, a, b), 0) << parts;
    }
  }
  EXPECT_THROW(fractional_design(0), std::invalid_argument);
  EXPECT_THROW(fractional_design(20), std::invalid_argument);
}

// Five parts, two of which only help together: the effects, and the pair, with intervals that hold.
TEST(Factorial, EffectsAndThePairAreFound) {
  std::mt19937 random(4);
  std::normal_distribution<double> scatter(0, 0.01);
  const std::vector<double> effects{0.3, 0.1, 0, -0.05, 0};
  const std::vector<PartSet> cells = fractional_design(5);
  int covered = 0, all = 0, pairs = 0, wrong_pairs = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<double> values;
    for (const PartSet& cell : cells) {
      double value = 2 + scatter(random);
      for (std::size_t part = 0; part < 5; ++part) value += cell[part] ? effects[part] : 0;
      values.push_back(value + (cell[0] && cell[1] ? 0.2 : 0));
    }
    const RunSpread noise{.squares = 0.0001 * 6, .freedom = 6, .from = {}};
    const FactorialAnswer answer = fit_factorial(cells, values, noise);
    for (const PairEffect& pair : answer.pairs) {
      const bool is_it = pair.a == 0 && pair.b == 1;
      (is_it ? pairs : wrong_pairs)++;
      if (is_it) {
        EXPECT_NEAR(pair.gain, 0.2, 0.08);
      }
    }
    for (std::size_t part = 0; part < 5; ++part, ++all) {
      const double truth = effects[part] + (part < 2 ? 0.1 : 0);  // averaged over the other one
      covered += answer.parts[part].ci95.low <= truth && truth <= answer.parts[part].ci95.high;
    }
  }
  EXPECT_GE(pairs, 295);
  EXPECT_LE(wrong_pairs, 15);
  EXPECT_GE(covered, all * 93 / 100);
}

TEST(Factorial, WhatTheRunsCannotTellIsMissing) {
  const std::vector<PartSet> cells = fractional_design(3);
  std::vector<double> values(8, missing);
  values[0] = 1;
  EXPECT_TRUE(is_missing(fit_factorial(cells, values, {}).parts[0].gain));
  EXPECT_TRUE(fit_factorial({}, {}, {}).parts.empty());
  // Equal values without a noise: effects of 0, and no pair.
  const FactorialAnswer none = fit_factorial(cells, std::vector<double>(8, 3.0), {});
  EXPECT_DOUBLE_EQ(none.parts[1].gain, 0);
  EXPECT_TRUE(none.pairs.empty());
}

// What each cell gives if the parts have these effects and the third and fourth another one together.
std::vector<double> values_with(const std::vector<PartSet>& cells, const std::vector<double>& effects, double together,
                                double scatter) {
  std::mt19937 random(5);
  std::normal_distribution<double> noise(0, scatter > 0 ? scatter : 1);
  std::vector<double> values;
  for (const PartSet& cell : cells) {
    double value = 2 + (scatter > 0 ? noise(random) : 0);
    for (std::size_t part = 0; part < cell.size(); ++part) value += cell[part] ? effects[part] : 0;
    values.push_back(value + (together != 0 && cell[2] && cell[3] ? together : 0));
  }
  return values;
}

constexpr RunSpread small_noise{.squares = 1e-4 * 6, .freedom = 6};

TEST(Factorial, APairOfFourPartsIsTheTrueOne) {
  const std::vector<PartSet> cells = fractional_design(4);
  for (const double scatter : {0.01, 0.0}) {
    const FactorialAnswer answer =
        fit_factorial(cells, values_with(cells, {0.5, 0, 0, 0}, 0.3, scatter), scatter > 0 ? small_noise : RunSpread{});
    ASSERT_EQ(answer.pairs.size(), 1u) << scatter;
    EXPECT_EQ(answer.pairs[0].a, 2u);
    EXPECT_EQ(answer.pairs[0].b, 3u);
    EXPECT_NEAR(answer.pairs[0].gain, 0.3, 0.03);
    EXPECT_TRUE(answer.pairs[0].others.empty());
    const std::vector<std::size_t> dropped = scatter > 0 ? std::vector<std::size_t>{1} : std::vector<std::size_t>{};
    EXPECT_EQ(droppable_parts(answer), dropped);
  }
}

// Half of the 16 runs failed, so that what parts 3 and 4 do together looks like what 1 and 2 do.
TEST(Factorial, PairsThatTheRunsDontTellApartAreNamedTogether) {
  const std::vector<PartSet> cells = fractional_design(4);
  for (const double scatter : {0.01, 0.0}) {
    std::vector<double> values = values_with(cells, {0.5, 0, 0, 0}, 0.3, scatter);
    for (std::size_t run = 0; run < cells.size(); ++run)
      if (((cells[run][0] != cells[run][1]) != cells[run][2]) != cells[run][3]) values[run] = missing;
    const FactorialAnswer answer = fit_factorial(cells, values, scatter > 0 ? small_noise : RunSpread{});
    ASSERT_EQ(answer.pairs.size(), 1u) << scatter;
    std::set<std::pair<std::size_t, std::size_t>> named(answer.pairs[0].others.begin(), answer.pairs[0].others.end());
    named.emplace(answer.pairs[0].a, answer.pairs[0].b);
    EXPECT_EQ(named, (std::set<std::pair<std::size_t, std::size_t>>{{0, 1}, {2, 3}})) << scatter;
    EXPECT_TRUE(droppable_parts(answer).empty()) << scatter;
  }
}

TEST(Factorial, PartsThatHelpTogetherAreNotDropped) {
  FactorialAnswer answer;
  answer.parts.assign(12, {.gain = 1, .ci95 = {0.9, 1.1}});
  EXPECT_TRUE(droppable_parts(answer).empty()) << "each is below a tenth of the sum";
  answer.parts.assign(12, {.gain = 1, .ci95 = {-0.1, 1.1}});
  EXPECT_EQ(droppable_parts(answer), (std::vector<std::size_t>{0})) << "two could lose more than a tenth";
  answer.parts[7].ci95 = {-0.1, 0.05};
  answer.parts[9].ci95 = {-2, -1};
  EXPECT_EQ(droppable_parts(answer), (std::vector<std::size_t>{0, 7, 9})) << "the smallest first, losses at no gain";
  answer.parts[0].ci95 = {0.01, 0.02};
  EXPECT_EQ(droppable_parts(answer), (std::vector<std::size_t>{1, 7, 9})) << "never one that surely helps";
}

TEST(Factorial, RoundingIsNoNoise) {
  for (std::size_t parts = 2; parts <= most_parts; ++parts) {
    const std::vector<PartSet> cells = fractional_design(parts);
    std::vector<double> effects;
    for (std::size_t part = 0; part < parts; ++part) effects.push_back(0.1 / double(part + 3));
    const std::vector<double> values = values_with(cells, effects, 0, 0);
    const FactorialAnswer unknown = fit_factorial(cells, values, {});
    const FactorialAnswer known = fit_factorial(cells, values, small_noise);
    EXPECT_TRUE(unknown.pairs.empty() && known.pairs.empty()) << parts;
    EXPECT_TRUE(droppable_parts(unknown).empty()) << parts;
    for (std::size_t part = 0; part < parts; ++part) {
      EXPECT_NEAR(unknown.parts[part].gain, effects[part], 1e-9);
      EXPECT_FALSE(unknown.parts[part].ci95.known()) << parts;
      EXPECT_GT(known.parts[part].ci95.high - known.parts[part].ci95.low, 0.01);
    }
    const FactorialAnswer equal = fit_factorial(cells, std::vector<double>(cells.size(), 1.0 / 3), {});
    EXPECT_FALSE(equal.parts[0].ci95.known()) << parts;
    EXPECT_TRUE(equal.pairs.empty()) << parts;
  }
}

}  // namespace
}  // namespace stepladder
