// A stranger's steps may be as far apart as numbers allow: what reads them takes as long as there are steps.
#include <gtest/gtest.h>

#include <algorithm>

#include "app/cli/metric_report.h"
#include "app/figures/figure.h"
#include "app/record/pool_source.h"

namespace stepladder {
namespace {

constexpr std::int64_t distant = 1'000'000'000'000'000;

class DistantSteps : public testing::Test {
 protected:
  DistantSteps() {
    const std::vector<StepRecord> steps{{.step = 1, .loss = 3, .val_loss = 3, .dt_ms = 20},
                                        {.step = distant, .loss = 2, .val_loss = 2, .dt_ms = 20}};
    run_ = store_.existing_run(store_.insert_finished({.name = "r", .started_at = 1e300}, steps));
    store_.metrics().append(run_.id, "acc", std::vector<MetricPoint>{{.step = 1, .value = 0.5}, {distant, 0.75}});
  }

  RunStore store_ = RunStore::in_memory();
  stepladder::Run run_;
};

TEST_F(DistantSteps, AreARunOfAPool) {
  const SpeedrunLog log = speedrun_log_of(store_, run_);
  EXPECT_EQ(log.evaluations.size(), 2u);
  EXPECT_EQ(log.final.step, distant);
}

TEST_F(DistantSteps, AreRowsOfAWideTable) {
  std::string text;
  write_metrics_csv(store_, std::vector{run_}, MetricRows::wide, [&](std::string_view piece) { text += piece; });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
}

TEST(Ticks, AnAxisOfAllPositiveNumbersHasSome) {
  Figure figure;
  figure.y.is_log = true;
  figure.curves.push_back({.x = {1, 2, 3}, .y = {5e-324, 1, 1.7e308}});
  const FigureRange range = y_range(figure);
  EXPECT_GT(range.low, 0);
  EXPECT_GE(ticks(range, true, 6).size(), 2u);
}

}  // namespace
}  // namespace stepladder
