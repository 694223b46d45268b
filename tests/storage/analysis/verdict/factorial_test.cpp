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
    EXPECT_EQ(cells.size(), parts <= 4 ? 8u : parts <= 11 ? 12u : 20u);
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

}  // namespace
}  // namespace stepladder
