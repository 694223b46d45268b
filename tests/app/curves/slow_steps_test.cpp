#include "app/curves/slow_steps.h"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

Series twenty_steps() {
  Series series;
  for (std::int64_t step = 1; step <= 20; ++step) series.append({.step = step, .loss = 2, .dt_ms = 10});
  return series;
}

TEST(SlowSteps, AreNamedWithWhatIsKnownOfThem) {
  Series series = twenty_steps();
  series.dt_ms[0] = 100;  // the first
  series.dt_ms[7] = 40;   // step 8, after a validation
  series.val_loss[6] = 2;
  series.dt_ms[11] = 50;  // step 12, saved
  series.dt_ms[15] = 60;  // step 16, throttled
  series.dt_ms[18] = 30;  // step 19, nothing known
  const std::vector<SystemMetrics> metrics{{.step = 16, .throttle_reason = "power cap"}};
  const std::vector<std::int64_t> saved{12};
  const std::vector<SlowStep> slow = slow_steps(series, metrics, saved);
  ASSERT_EQ(slow.size(), 5u);
  EXPECT_EQ(slow[0].step, 1);
  EXPECT_NE(slow[0].why.find("10.0 times the median; first step"), std::string::npos) << slow[0].why;
  EXPECT_EQ(slow[1].step, 16);
  EXPECT_NE(slow[1].why.find("throttled: power cap"), std::string::npos);
  EXPECT_NE(slow[2].why.find("checkpoint"), std::string::npos);
  EXPECT_NE(slow[3].why.find("validation ran just before"), std::string::npos);
  EXPECT_NE(slow[4].why.find("reason unknown"), std::string::npos);
  EXPECT_EQ(slow_steps(series, metrics, saved, 2).size(), 2u);
}

TEST(SlowSteps, NoneWhereStepsAreAlikeOrTooFew) {
  EXPECT_TRUE(slow_steps(twenty_steps(), {}, {}).empty());
  Series few;
  few.append({.step = 1, .dt_ms = 1});
  few.append({.step = 2, .dt_ms = 100});
  EXPECT_TRUE(slow_steps(few, {}, {}).empty());
}

}  // namespace
}  // namespace stepladder
