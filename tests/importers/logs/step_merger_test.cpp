#include "storage/importers/logs/step_merger.h"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

PrintedStep printed_step(std::int64_t number, double loss, double time = missing) {
  PrintedStep printed;
  printed.step = number;
  printed.loss = loss;
  printed.time = time;
  return printed;
}

using Added = StepMerger::Added;

TEST(StepMerger, a_line_adds_to_a_step_that_it_does_not_contradict) {
  StepMerger steps;
  EXPECT_EQ(steps.add(printed_step(1, 8)), Added::new_step);
  EXPECT_EQ(steps.add(printed_step(1, 8.0001, 250)), Added::known_step) << "the same loss with more digits";
  EXPECT_EQ(steps.held()[0].time, 250);
  EXPECT_EQ(steps.add(printed_step(1, 7)), Added::new_step) << "a newer attempt";
  EXPECT_EQ(steps.steps(), 2);
}

TEST(StepMerger, the_lowest_rank_counts) {
  StepMerger steps;
  PrintedStep third = printed_step(1, 8), first = printed_step(1, 9), fourth = printed_step(1, 10);
  third.rank = 2, first.rank = 0, fourth.rank = 3;
  for (const PrintedStep& it : {third, first, fourth}) steps.add(it);
  ASSERT_EQ(steps.held().size(), 1u);
  EXPECT_EQ(steps.held()[0].loss, 9);
}

PrintedStep micro_step(std::int64_t number, std::int64_t part, double loss, double time) {
  PrintedStep printed = printed_step(number, loss, time);
  printed.micro = part;
  printed.parts = 1;
  return printed;
}

TEST(StepMerger, micro_steps_are_parts_of_a_step) {
  StepMerger steps;
  for (int step = 1; step <= 2; ++step) {
    for (int part = 0; part < 4; ++part) steps.add(micro_step(step, part, 8 + part, 80));
    if (step == 1) steps.add(printed_step(1, 9, 330));
  }
  EXPECT_EQ(steps.restarts(), 0);
  ASSERT_EQ(steps.held().size(), 2u);
  EXPECT_EQ(steps.held()[0].loss, 9) << "the step's own";
  EXPECT_EQ(steps.held()[0].time, 330);
  EXPECT_EQ(steps.held()[1].loss, 9.5) << "the mean";
  EXPECT_EQ(steps.held()[1].time, 320);
  EXPECT_EQ(steps.add(micro_step(2, 0, 8, 80)), Added::new_step) << "a newer attempt";
}

TEST(StepMerger, the_loss_of_the_untrained_model_is_that_of_step_0) {
  StepMerger steps;
  steps.validates_untrained();
  steps.validate(11, false);
  steps.add(printed_step(20, 8));
  ASSERT_EQ(steps.held().size(), 2u);
  EXPECT_EQ(steps.held()[0].step, 0);
  EXPECT_EQ(steps.held()[0].val_loss, 11);
  EXPECT_TRUE(is_missing(steps.held()[1].val_loss));
}

TEST(StepMerger, a_block_that_is_printed_again_adds_its_times) {
  StepMerger steps;
  for (int i = 1; i <= 100; ++i) steps.add(printed_step(i, 1.0 / i));
  for (int i = 1; i <= 100; ++i) EXPECT_EQ(steps.add(printed_step(i, 1.0 / i, 10)), Added::known_step) << i;
  EXPECT_EQ(steps.held()[3].time, 10);
}

TEST(StepMerger, a_step_that_was_released_takes_nothing_more) {
  StepMerger steps;
  for (int i = 1; i <= 3; ++i) steps.add(printed_step(i, 8));
  steps.release(3);
  EXPECT_EQ(steps.add(printed_step(2, missing)), Added::too_late);
  EXPECT_FALSE(steps.validate(3.5, false));
}

TEST(StepMerger, a_test_loss_counts_where_there_is_no_validation_loss) {
  StepMerger steps;
  steps.add(printed_step(1, 8));
  EXPECT_TRUE(steps.validate(5, true));
  EXPECT_EQ(steps.held()[0].val_loss, 5);
  EXPECT_TRUE(steps.validate(4, false));
  EXPECT_TRUE(steps.validate(6, true));
  EXPECT_EQ(steps.held()[0].val_loss, 4);
}

}  // namespace
}  // namespace stepladder
