#include "storage/records.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "temporary_folder.h"

namespace stepladder {
namespace {

TEST(Records, missing_is_not_any_nan) {
  EXPECT_TRUE(is_missing(missing));
  EXPECT_TRUE(std::isnan(missing));
  EXPECT_FALSE(is_missing(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(is_missing(0.0));
}

TEST(Records, every_status_and_sync_can_be_read_back) {
  for (const RunStatus status : {RunStatus::queued, RunStatus::running, RunStatus::finished, RunStatus::stopped,
                                 RunStatus::failed, RunStatus::interrupted})
    EXPECT_EQ(run_status_from(to_string(status)), status);
  for (const Sync sync : {Sync::event, Sync::device, Sync::none, Sync::unknown})
    EXPECT_EQ(sync_from(to_string(sync)), sync);
  EXPECT_EQ(to_string(RunStatus::interrupted), "interrupted");
  EXPECT_EQ(to_string(Sync::event), "event");
}

TEST(Records, an_unknown_name_is_named) {
  EXPECT_NE(complaint<std::invalid_argument>([] { run_status_from("paused"); }).find("'paused'"), std::string::npos);
  EXPECT_NE(complaint<std::invalid_argument>([] { sync_from("Event"); }).find("'Event'"), std::string::npos);
}

TEST(Series, keeps_the_order_of_steps_and_the_newer_record) {
  Series series;
  for (const std::int64_t step : {1, 2, 5, 6}) series.append({.step = step, .loss = static_cast<double>(step)});
  series.append({.step = 5, .loss = 50, .dt_ms = 7, .tokens = 9, .lr = 0.5, .grad_norm = 2});
  series.append({.step = 3, .loss = 30, .val_loss = 31});
  EXPECT_EQ(series.step, (std::vector<std::int64_t>{1, 2, 3, 5, 6}));
  EXPECT_EQ(series.loss, (std::vector<double>{1, 2, 30, 50, 6}));
  EXPECT_EQ(series.val_loss[2], 31);
  EXPECT_EQ(series.dt_ms[3], 7);
  EXPECT_EQ(series.tokens[3], 9);
  EXPECT_EQ(series.lr[3], 0.5);
  EXPECT_EQ(series.grad_norm[3], 2);
  EXPECT_TRUE(is_missing(series.grad_norm[4]));
  for (const std::size_t length :
       {series.tokens.size(), series.val_loss.size(), series.dt_ms.size(), series.lr.size(), series.grad_norm.size()})
    EXPECT_EQ(length, series.size());
}

TEST(Series, throughput_needs_tokens_and_a_positive_dt) {
  Series series;
  series.append({.step = 1, .dt_ms = 250, .tokens = 4096});
  series.append({.step = 2, .dt_ms = 250});
  series.append({.step = 3, .tokens = 4096});
  series.append({.step = 4, .dt_ms = 0, .tokens = 4096});
  series.append({.step = 5, .dt_ms = -1, .tokens = 4096});
  EXPECT_EQ(series.tokens_per_s(0), 16384);
  for (const std::size_t i : {1, 2, 3, 4}) EXPECT_TRUE(is_missing(series.tokens_per_s(i))) << i;
}

}  // namespace
}  // namespace stepladder
