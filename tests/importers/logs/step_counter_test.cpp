#include "storage/importers/logs/step_counter.h"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

// A counter and the run that it counts, as the pipeline would keep it.
struct Counting {
  StepCounter counter;
  RunProgress run;

  Counted count(const StepLine& line, bool new_block = false) {
    LogLine log_line;
    log_line.kind = LogLine::Kind::step;
    log_line.step = line;
    const Counted counted = counter.count(log_line, run, new_block);
    if (counted.what == Counted::What::step) add(counted.step.step, line);
    return counted;
  }

  void add(std::int64_t step, const StepLine& line) {
    if (!run.open) run.first_step = step, run.step_is_epoch = counter.counts_epochs(line);
    run.open = true;
    run.last_step = step;
    ++run.steps;
    run.lacks_loss = is_missing(line.loss);
  }
};

StepLine line(std::int64_t step, double loss) {
  StepLine line;
  line.step = step;
  line.loss = loss;
  return line;
}

TEST(StepCounter, goes_on_where_each_epoch_counts_from_the_start) {
  Counting log;
  std::vector<std::int64_t> steps;
  for (int epoch = 1; epoch <= 2; ++epoch)
    for (int batch = 10; batch <= 30; batch += 10) {
      StepLine it = line(batch, 3);
      it.epoch = epoch;
      it.whole_epoch = true;
      steps.push_back(log.count(it).step.step);
    }
  EXPECT_EQ(steps, (std::vector<std::int64_t>{10, 20, 30, 40, 50, 60}));
}

// Lightning draws the bar of a new epoch at 0/N with the values of the last one.
TEST(StepCounter, the_values_at_the_start_of_a_new_bar_may_be_those_of_the_last) {
  Counting log;
  std::vector<std::int64_t> steps, validated;
  const auto bar = [&](double epoch, std::int64_t batch, double loss, double val_loss = missing) {
    StepLine it;
    it.bar = it.whole_epoch = it.epoch_leads = true;
    it.epoch = epoch;
    it.batch = batch;
    it.batches = 10;
    it.loss = loss;
    it.val_loss = val_loss;
    const Counted counted = log.count(it);
    if (counted.what == Counted::What::step) steps.push_back(counted.step.step);
    if (!is_missing(counted.step.val_loss)) validated.push_back(log.run.last_step);
  };
  bar(0, 5, 4);
  bar(0, 10, 3.9);
  bar(0, 10, 3.9, 3.8);
  bar(1, 0, 3.9, 3.8);
  bar(1, 5, 3.7, 3.8);
  bar(1, 10, 3.6, 3.8);
  bar(1, 10, 3.6, 3.5);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{5, 10, 10, 15, 20, 20}));
  EXPECT_EQ(validated, (std::vector<std::int64_t>{10, 20}));
  // Such a line may be the first with a validation loss.
  bar(2, 0, 3.6, 3.4);
  EXPECT_EQ(validated, (std::vector<std::int64_t>{10, 20, 20}));
  // A bar that always begins with the loss of its first step does so in the next epoch too.
  log = {};
  steps.clear();
  for (const double epoch : {0.0, 1.0})
    for (std::int64_t batch = 0; batch <= 10; ++batch) bar(epoch, batch, 3);
  EXPECT_EQ(steps.size(), 20u);
  EXPECT_EQ(steps.back(), 20);
}

TEST(StepCounter, a_record_has_the_step_and_the_time_of_its_bar) {
  Counting log;
  StepLine bar, record;
  bar.bar = true;
  bar.batch = 10;
  bar.batches = 100;
  bar.time = 0.5;
  EXPECT_FALSE(log.counter.follow_bar(bar, log.run, false));
  record.record = true;
  record.loss = 3;
  const Counted counted = log.count(record);
  EXPECT_EQ(counted.step.step, 10);
  EXPECT_EQ(counted.step.time, 0.5);
  EXPECT_EQ(counted.line->time_unit, TimeUnit::s);
}

TEST(StepCounter, a_bar_behind_the_first_record_renumbers_it) {
  Counting log;
  StepLine bar, record;
  record.record = true;
  record.loss = 3;
  EXPECT_EQ(log.count(record).step.step, 1);
  bar.batch = 10;
  bar.batches = 100;
  EXPECT_EQ(log.counter.follow_bar(bar, log.run, false), 10);
}

TEST(StepCounter, only_the_last_of_an_epochs_bars_is_a_step) {
  Counting log;
  const auto bar = [](std::int64_t batch, double loss) {
    StepLine it;
    it.bar = it.keras = true;
    it.batch = batch;
    it.batches = 10;
    it.loss = loss;
    return it;
  };
  EXPECT_EQ(log.count(bar(5, 4)).what, Counted::What::nothing);
  const Counted done = log.count(bar(10, 3));
  EXPECT_EQ(done.step.step, 10);
  EXPECT_EQ(done.step.loss, 3);
  EXPECT_EQ(log.count(bar(2, 2)).what, Counted::What::nothing);
  EXPECT_EQ(log.counter.release_held().step.step, 12) << "the log ends before the bar is full";
}

TEST(StepCounter, a_lone_validation_loss_is_not_a_step) {
  Counting log;
  log.count(line(1, 3));
  StepLine validation;
  validation.val_loss = 3.5;
  EXPECT_EQ(log.count(validation).what, Counted::What::validation);
  EXPECT_EQ(log.count(line(2'000'000'000'000'000, 3)).what, Counted::What::out_of_bounds);
}

}  // namespace
}  // namespace stepladder
