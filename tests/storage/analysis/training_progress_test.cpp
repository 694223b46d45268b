#include "storage/analysis/training_progress.h"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

TEST(TrainingProgress, counts_a_step_without_a_time_as_the_one_before) {
  TrainingProgress progress(stepladder::Run{.tokens_per_step = 10});
  progress.add({.step = 0, .val_loss = 9});
  EXPECT_TRUE(is_missing(progress.seconds())) << "nothing was trained yet";
  EXPECT_DOUBLE_EQ(progress.tokens(), 0);
  progress.add({.step = 1, .loss = 8, .dt_ms = 100});
  progress.add({.step = 2, .loss = 7});
  progress.add({.step = 3, .loss = 6, .dt_ms = 200});
  EXPECT_DOUBLE_EQ(progress.seconds(), 0.4);
  EXPECT_DOUBLE_EQ(progress.tokens(), 30);
}

TEST(TrainingProgress, counts_the_steps_that_a_log_does_not_name) {
  TrainingProgress progress(stepladder::Run{.tokens_per_step = 10});
  progress.add({.step = 100, .loss = 8, .dt_ms = 100});
  progress.add({.step = 200, .loss = 7, .dt_ms = 100});
  EXPECT_DOUBLE_EQ(progress.tokens(), 2000);
  EXPECT_DOUBLE_EQ(progress.seconds(), 10.1) << "what the steps before the first record took is unknown";
}

TEST(TrainingProgress, begins_where_the_programs_own_clock_does) {
  stepladder::Run run;
  run.printed.clock_starts_after = 2;
  TrainingProgress progress(run);
  progress.add({.step = 1, .loss = 8, .dt_ms = 70'000});
  progress.add({.step = 2, .loss = 8, .dt_ms = 1000});
  EXPECT_TRUE(is_missing(progress.seconds()));
  progress.add({.step = 3, .loss = 8, .dt_ms = 200});
  progress.add({.step = 4, .loss = 8, .dt_ms = 200});
  EXPECT_DOUBLE_EQ(progress.seconds(), 0.4);
}

TEST(TrainingProgress, without_tokens_or_times_has_none) {
  TrainingProgress progress(stepladder::Run{});
  progress.add({.step = 1, .loss = 8});
  EXPECT_TRUE(is_missing(progress.seconds()) && is_missing(progress.tokens()));
}

}  // namespace
}  // namespace stepladder
