#include "storage/analysis/verdict/picked_best.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace stepladder {
namespace {

RunSpread spread(double deviation, double freedom) {
  return {.squares = deviation * deviation * freedom, .freedom = freedom, .from = SpreadFrom::repeats};
}

// Forty equal configurations, one run of each: the best is ahead by two standard deviations and more.
TEST(PickedBest, OfEqualOnesItLosesItsLead) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> noise(3.2, 0.02);
  double lead = 0, corrected = 0;
  int covered = 0;
  constexpr int sweeps = 500;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    std::vector<Candidate> candidates;
    for (int i = 0; i < 40; ++i) candidates.push_back({noise(random), 1});
    const PickedBest best = picked_best(candidates, false, spread(0.02, 40), spread(0.02, 40));
    EXPECT_EQ(best.of, 40u);
    EXPECT_GE(best.ties, 25u);
    lead += (3.2 - candidates[best.place].mean) / sweeps;
    corrected += (3.2 - best.corrected) / sweeps;
    covered += best.ci95.low <= 3.2 && 3.2 <= best.ci95.high;
  }
  EXPECT_GT(lead, 0.04);
  EXPECT_NEAR(corrected, 0, 0.002);
  EXPECT_GE(covered, 0.95 * sweeps);
}

TEST(PickedBest, OneThatIsFarAheadKeepsIt) {
  const std::vector<Candidate> candidates{{3.5, 2}, {3.1, 2}, {3.4, 2}, {missing, 0}, {NAN, 1}};
  const PickedBest best = picked_best(candidates, false, spread(0.01, 3), spread(0.1, 3));
  EXPECT_EQ(best.place, 1u);
  EXPECT_EQ(best.of, 3u);
  EXPECT_EQ(best.ties, 0u);
  EXPECT_DOUBLE_EQ(best.corrected, 3.1);
  EXPECT_LT(best.ci95.low, 3) << "of one candidate's runs, which differ more than candidates at one seed";
  EXPECT_FALSE(picked_best(candidates, false, spread(0.01, 3), {}).ci95.known());
  const PickedBest highest = picked_best(candidates, true, spread(0.05, 3), {});
  EXPECT_EQ(highest.place, 0u);
  EXPECT_EQ(highest.ties, 1u);
  EXPECT_LT(highest.corrected, 3.5);
}

TEST(PickedBest, WithoutASpreadNothingIsCorrected) {
  const std::vector<Candidate> candidates{{3.5, 1}, {3.1, 1}};
  EXPECT_FALSE(picked_best(candidates, false, {}, {}).known());
  EXPECT_FALSE(picked_best(std::vector<Candidate>{{3.5, 1}}, false, spread(0.1, 3), {}).known());
  EXPECT_EQ(picked_best({}, false, spread(0.1, 3), {}).of, 0u);
}

}  // namespace
}  // namespace stepladder
