#include "storage/importers/logs/step_clock.h"

#include <gtest/gtest.h>

#include "tests/importers/told.h"

namespace stepladder {
namespace {

PrintedStep step(std::int64_t number, double time, double elapsed) {
  PrintedStep printed;
  printed.step = number;
  printed.loss = 3;
  printed.time = time;
  printed.elapsed = elapsed;
  return printed;
}

struct Settled {
  std::vector<PrintedStep> steps;
  StepLabels labels;
  LogFacts facts;
  InferredUnits infer(std::int64_t tokens_per_step = 0) {
    return infer_run_units({.steps = steps, .labels = labels, .facts = facts, .tokens_per_step = tokens_per_step});
  }
};

TEST(UnitInference, a_time_that_only_grows_is_a_clock) {
  Settled log;
  log.labels.time_unit = TimeUnit::s;
  for (int i = 1; i <= 8; ++i) log.steps.push_back(step(i, 0.5 * i, missing));
  const InferredUnits units = log.infer();
  EXPECT_TRUE(units.time_is_clock);
  EXPECT_TRUE(is_missing(log.steps[0].time));
  EXPECT_EQ(log.steps[7].elapsed, 4);
  EXPECT_EQ(log.labels.elapsed_unit, TimeUnit::s);

  Told told;
  told.begin_run({});
  StepClock clock(units, told);
  for (const PrintedStep& it : log.steps) clock.take(it);
  for (const StepRecord& it : told.runs[0].steps) EXPECT_EQ(it.dt_ms, 500);
  EXPECT_TRUE(clock.timed());
}

TEST(UnitInference, a_column_of_tokens_that_counts_up_gives_the_tokens_of_a_step) {
  Settled log;
  for (int i = 1; i <= 8; ++i) {
    log.steps.push_back(step(i, 250 + i % 2, missing));
    log.steps.back().tokens = 4096.0 * i;
  }
  EXPECT_EQ(log.infer().tokens_per_step, 4096);
  EXPECT_EQ(log.infer(512).tokens_per_step, 512) << "given by the user";
}

TEST(StepClock, says_once_that_the_clock_was_set_back) {
  Told told;
  told.begin_run({});
  StepClock clock({.ms_per_time = 1000}, told);
  for (const double at : {1.0, 2.0, 0.5, 1.5, 0.25}) {
    static std::int64_t number = 0;
    clock.take(step(++number, missing, at));
  }
  EXPECT_EQ(told.notes.size(), 1u);
  EXPECT_EQ(told.runs[0].steps[1].dt_ms, 1000);
  EXPECT_EQ(told.runs[0].steps[2].dt_ms, 500);
}

TEST(StepClock, computes_the_time_from_a_rate) {
  Told told;
  told.begin_run({});
  StepClock clock({.tokens_per_step = 4096, .rate_to_steps = 1000.0 / 4096, .printed = {.unit = "tokens/ms"}}, told);
  PrintedStep printed = step(1, missing, missing);
  printed.throughput = 8.192;
  clock.take(printed);
  EXPECT_EQ(told.runs[0].steps[0].dt_ms, 500);
  EXPECT_TRUE(told.noted("8.192 tokens/ms"));
}

}  // namespace
}  // namespace stepladder
