#include "app/record/bisection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace stepladder {
namespace {

struct Outcome {
  std::optional<std::size_t> found;
  std::size_t runs = 0;
  std::string reason;
  std::size_t last_good = 0, first_bad = 0;
};

// Commits of which those from `culprit` on are `change` worse, with noise. 0: nothing changes.
Outcome search(std::size_t commits, std::size_t culprit, double change, double noise, std::uint64_t seed,
               BisectionLimits limits = {}, std::vector<std::size_t> broken = {}) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> error(0, noise);
  Bisection bisection(commits, limits);
  while (const auto commit = bisection.next()) {
    if (std::find(broken.begin(), broken.end(), *commit) != broken.end())
      bisection.cannot_measure(*commit);
    else
      bisection.add(*commit, (culprit > 0 && *commit >= culprit ? change : 0) + error(random));
  }
  return {bisection.found(), bisection.runs(), bisection.reason(), bisection.last_good(), bisection.first_bad()};
}

TEST(Bisection, finds_a_slow_down_of_five_percent_in_noise_of_one) {
  int right = 0, wrong = 0;
  std::size_t runs = 0;
  constexpr int trials = 400;
  for (int i = 0; i < trials; ++i) {
    const std::size_t culprit = 1 + static_cast<std::size_t>(i) % 31;
    const Outcome outcome = search(32, culprit, 0.05, 0.01, static_cast<std::uint64_t>(i));
    right += outcome.found == culprit;
    wrong += outcome.found && outcome.found != culprit;
    runs += outcome.runs;
  }
  EXPECT_GE(right, 0.97 * trials);
  EXPECT_LE(wrong, 0.02 * trials);
  EXPECT_LT(runs, 60u * trials);
}

TEST(Bisection, claims_nothing_where_nothing_changed) {
  int found = 0;
  for (int i = 0; i < 200; ++i) found += search(32, 0, 0, 0.01, static_cast<std::uint64_t>(i)).found.has_value();
  EXPECT_LE(found, 4);
  // Of every hundred pairs of equal ends some differ by chance; the others use their budget up.
  int used_up = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Outcome outcome = search(32, 0, 0, 0.01, seed, {.budget = 20});
    used_up += outcome.runs == 20 && outcome.reason.find("don't differ clearly") != std::string::npos &&
               outcome.reason.find("20 runs is used up") != std::string::npos;
  }
  EXPECT_GE(used_up, 36);
}

TEST(Bisection, a_larger_budget_goes_on_from_the_same_runs) {
  // The first twelve questions are the same, whatever the budget.
  std::vector<std::size_t> few, many;
  for (const auto& [budget, asked] : {std::pair(12, &few), std::pair(60, &many)}) {
    std::mt19937_64 random(1);
    std::normal_distribution<double> error(0, 0.01);
    Bisection bisection(32, {.budget = static_cast<std::size_t>(budget)});
    while (const auto commit = bisection.next()) {
      asked->push_back(*commit);
      bisection.add(*commit, (*commit >= 9 ? 0.05 : 0) + error(random));
    }
    if (budget == 60) {
      EXPECT_EQ(bisection.found(), 9u) << bisection.reason();
    }
  }
  ASSERT_EQ(few.size(), 12u);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
}

TEST(Bisection, goes_round_commits_that_cannot_be_measured) {
  EXPECT_EQ(search(32, 20, 0.05, 0.001, 1, {}, {15, 16, 17}).found, 20u);
  const Outcome beside = search(32, 16, 0.05, 0.001, 1, {}, {15, 16, 17});
  EXPECT_FALSE(beside.found);
  EXPECT_EQ(beside.last_good, 14u);
  EXPECT_EQ(beside.first_bad, 18u);
  EXPECT_NE(search(32, 16, 0.05, 0.001, 1, {}, {31}).reason.find("fails at the bad commit"), std::string::npos);
}

TEST(Bisection, small_cases) {
  EXPECT_EQ(search(2, 1, 0.05, 0.001, 1).found, 1u);
  EXPECT_EQ(search(3, 2, -0.05, 0.001, 1).found, 2u);  // a gain is a change, too
  EXPECT_EQ(search(8, 3, 0.05, 0, 1).found, 3u);       // no noise at all
  EXPECT_EQ(search(8, 3, 0.05, 0.001, 1, {.first_runs = 1}).found, 3u);
  EXPECT_THROW(Bisection(1, {}), std::invalid_argument);
}

}  // namespace
}  // namespace stepladder
