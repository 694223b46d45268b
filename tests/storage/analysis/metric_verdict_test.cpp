#include <gtest/gtest.h>

#include "storage/analysis/metric_comparison.h"

namespace stepladder {
namespace {

TEST(MetricVerdict, DependsOnWhichValuesAreBetter) {
  EXPECT_EQ(metric_verdict(-1, Direction::lower), MetricVerdict::better);
  EXPECT_EQ(metric_verdict(-1, Direction::higher), MetricVerdict::worse);
  EXPECT_EQ(metric_verdict(0, Direction::unknown), MetricVerdict::same);
  EXPECT_EQ(metric_verdict(1, Direction::unknown), MetricVerdict::cannot_tell);
  EXPECT_EQ(metric_verdict(missing, Direction::lower), MetricVerdict::cannot_tell);
  EXPECT_TRUE(is_missing(factor_from(0, 1)));
  EXPECT_TRUE(is_missing(factor_from(-1, 1)));
}

}  // namespace
}  // namespace stepladder
