#include <gtest/gtest.h>

#include <cmath>

#include "storage/importers/trackers/metric_names.h"
#include "storage/importers/trackers/metric_table.h"
#include "tests/importers/collecting_sink.h"

namespace stepladder {
namespace {

CollectingSink read_table(std::string_view bytes, const std::filesystem::path& path) {
  CollectingSink sink;
  MemoryInput input(bytes, path);
  EXPECT_TRUE(importers::tracker_csv().recognises(input.head(), input.path()));
  importers::tracker_csv().read(input, {}, sink);
  return sink;
}

TEST(TrackerCsv, WandbColumnsAreRuns) {
  const CollectingSink sink = read_table(
      "\"Step\",\"base - x - train/loss\",\"base - x - train/loss__MIN\",\"base - x - train/loss__MAX\","
      "\"bf16 - train/loss\"\r\n"
      "\"1\",\"4.5\",\"4.5\",\"4.5\",\"\"\r\n"
      "\"2\",\"NaN\",\"1\",\"2\",\"4.25\"\r\n"
      "what is this\r\n",
      "panel.csv");
  ASSERT_EQ(sink.runs.size(), 2U);
  EXPECT_EQ(sink.runs[0].run.title, "base - x");
  EXPECT_EQ(sink.runs[0].run.name, "panel base - x");
  ASSERT_EQ(sink.runs[0].steps.size(), 2U);
  EXPECT_EQ(sink.runs[0].steps[0].loss, 4.5);
  EXPECT_TRUE(std::isnan(sink.runs[0].steps[1].loss) && !is_missing(sink.runs[0].steps[1].loss));
  ASSERT_EQ(sink.runs[1].steps.size(), 1U);
  EXPECT_EQ(sink.runs[1].steps[0].step, 2);
  EXPECT_EQ(sink.runs[1].steps[0].loss, 4.25);
  EXPECT_EQ(sink.runs[1].rung, 1);
  EXPECT_EQ(sink.runs[1].ladder, "panel");
  EXPECT_TRUE(sink.noted("__MIN"));
  EXPECT_TRUE(sink.noted("was skipped"));
}

TEST(TrackerCsv, TensorBoardsMetricIsNamedByTheFile) {
  const std::string_view table = "Wall time,Step,Value\n1700000000.5,1,3.5\n1700000001.5,2,3.25\n";
  const CollectingSink validation = read_table(table, "run-a-tag-val_loss.csv");
  ASSERT_EQ(validation.runs.at(0).steps.size(), 2U);
  EXPECT_EQ(validation.runs[0].steps[1].val_loss, 3.25);
  EXPECT_EQ(validation.runs[0].steps[1].at, 1700000001.5);
  const CollectingSink unnamed = read_table(table, "table.csv");
  EXPECT_EQ(unnamed.runs.at(0).steps.at(0).loss, 3.5);
  EXPECT_TRUE(unnamed.noted("taken for the loss"));
}

TEST(TrackerCsv, LeavesOtherTablesAlone) {
  for (const char* table : {"step,loss\n1,2\n", "", "Step\n", "Step, - \n", "a - b,c - d\n", "Wall time,Step\n"}) {
    MemoryInput input(table);
    EXPECT_FALSE(importers::tracker_csv().recognises(input.head(), input.path())) << table;
  }
}

TEST(MetricNames, OfManyPrograms) {
  struct Case {
    const char* name;
    MetricRole role;
    double scale = 1;
  };
  const Case cases[] = {{"loss", MetricRole::loss},
                        {"train/loss", MetricRole::loss},
                        {"Training Loss", MetricRole::loss},
                        {"trainLoss", MetricRole::loss},
                        {"lm loss", MetricRole::loss},
                        {"loss_metrics/global_avg_loss", MetricRole::loss},
                        {"loss_metrics/global_max_loss", MetricRole::none},
                        {"loss/train/total", MetricRole::loss},
                        {"val_loss", MetricRole::val_loss},
                        {"eval/loss", MetricRole::val_loss},
                        {"validation loss", MetricRole::val_loss},
                        {"aux_loss", MetricRole::none},
                        {"loss_scale", MetricRole::none},
                        {"accuracy", MetricRole::none},
                        {"lr", MetricRole::lr},
                        {"lr-AdamW/pg1", MetricRole::lr},
                        {"lr-DecoupledAdamW/group0", MetricRole::lr},
                        {"train/learning_rate", MetricRole::lr},
                        {"grad_norm", MetricRole::grad_norm},
                        {"train/grad/norm", MetricRole::grad_norm},
                        {"grad_norm/layers.0", MetricRole::none},
                        {"dt", MetricRole::step_time, 0},
                        {"dt_ms", MetricRole::step_time, 1},
                        {"step_time", MetricRole::step_time, 0},
                        {"perf/step_time_s", MetricRole::step_time, 1000},
                        {"time/iter (ms)", MetricRole::step_time, 1},
                        {"sec_per_step", MetricRole::step_time, 1000},
                        {"s/it", MetricRole::step_time, 1000},
                        {"time_metrics/end_to_end(s)", MetricRole::step_time, 1000},
                        {"time_metrics/data_loading(s)", MetricRole::none},
                        {"it/s", MetricRole::steps_per_s, 1},
                        {"train_steps_per_second", MetricRole::steps_per_s, 1},
                        {"tok/s", MetricRole::tokens_per_s, 1},
                        {"tokens_per_second", MetricRole::tokens_per_s, 1},
                        {"throughput(tps)", MetricRole::tokens_per_s, 1},
                        {"tokens/ms", MetricRole::tokens_per_s, 1000},
                        {"throughput/device/tokens_per_sec", MetricRole::none},
                        {"samples/s", MetricRole::samples_per_s, 1},
                        {"num_input_tokens_seen", MetricRole::tokens_seen},
                        {"tokens_per_step", MetricRole::tokens_per_step},
                        {"epoch", MetricRole::none},
                        {"", MetricRole::none},
                        {"///", MetricRole::none}};
  for (const Case& one : cases) {
    const MetricMeaning meaning = meaning_of_metric(one.name);
    EXPECT_EQ(to_string(meaning.role), to_string(one.role)) << one.name;
    EXPECT_EQ(meaning.scale, one.scale) << one.name;
  }
}

TEST(MetricTable, UnitOfANamelessTimeComesFromTheWallClock) {
  for (const double seconds : {0.25, 250.0}) {
    MetricTable table;
    for (int step = 1; step <= 10; ++step) {
      table.add("loss", step, 3, 1000 + 0.26 * step);
      table.add("dt", step, seconds, 1000 + 0.26 * step);
    }
    const auto steps = table.take_steps();
    ASSERT_EQ(steps.records.size(), 10U);
    EXPECT_DOUBLE_EQ(steps.records[3].dt_ms, 250);
  }
  MetricTable table;
  table.add("dt", 1, 0.25, missing);
  table.add("loss", 1, 3, missing);
  const auto steps = table.take_steps();
  EXPECT_TRUE(is_missing(steps.records.at(0).dt_ms));
  EXPECT_EQ(steps.notes.at(0), "\"loss\" is the loss, \"dt\" is the step time");
  EXPECT_NE(steps.notes.at(1).find("has no unit"), std::string::npos);
}

TEST(MetricTable, WhatNoStepHasAFieldForBecomesMetrics) {
  MetricTable table;
  for (int step = 1; step <= 3; ++step) {
    table.add("train/loss", step, 4.0 / step, 100 + step);
    table.add("time_s", step, 0.1 * step, 100 + step);
    table.add("val/acc", step, 0.25 * step, 100 + step);
  }
  table.add("epoch_loss", 3, std::nan(""), missing);
  const auto steps = table.take_steps();
  ASSERT_EQ(steps.metrics.size(), 4U);
  EXPECT_EQ(steps.metrics[0].metric.name, "epoch_loss");
  ASSERT_EQ(steps.metrics[0].points.size(), 1U);
  EXPECT_TRUE(std::isnan(steps.metrics[0].points[0].value) && !is_missing(steps.metrics[0].points[0].value));
  EXPECT_EQ(steps.metrics[2].metric.name, "train/loss");
  EXPECT_EQ(steps.metrics[2].metric.field, "loss") << "the steps have it to the bit";
  EXPECT_TRUE(steps.metrics[2].points.empty());
  EXPECT_EQ(steps.metrics[3].points.size(), 3U);
  EXPECT_DOUBLE_EQ(steps.metrics[3].points[2].value, 0.75);
  EXPECT_DOUBLE_EQ(steps.metrics[3].points[2].at, 103);
  EXPECT_EQ(steps.notes.at(1), "kept 3 more metrics: epoch_loss, time_s, val/acc");
}

TEST(MetricTable, WithoutAnyKnownMetricTheLongestOneCountsTheSteps) {
  MetricTable table;
  for (int step = 1; step <= 5; ++step) table.add("reward", step, step, 100 + 0.5 * step);
  table.add("episodes", 5, 1, missing);
  const auto steps = table.take_steps();
  ASSERT_EQ(steps.records.size(), 5U);
  EXPECT_DOUBLE_EQ(steps.records[4].at, 102.5);
  EXPECT_DOUBLE_EQ(steps.records[4].dt_ms, 500);
  EXPECT_EQ(steps.metrics.size(), 2U);
}

TEST(MetricTable, ResumedStepsAreKeptTwiceAndTheNewerIsWhole) {
  MetricTable table;
  for (const double loss : {4.0, 3.0})
    for (int step = 1; step <= 3; ++step) table.add("loss", step, loss, missing);
  table.add("val_loss", 2, 2.5, missing);
  const auto steps = table.take_steps();
  ASSERT_EQ(steps.records.size(), 6U);
  EXPECT_EQ(steps.records[2].loss, 4);
  EXPECT_TRUE(is_missing(steps.records[2].val_loss));
  EXPECT_EQ(steps.records[3].loss, 3);
  EXPECT_EQ(steps.records[3].val_loss, 2.5);
}

// Hugging Face's Trainer: what it logs with "train_runtime" is of the whole training, and evaluations repeat a step.
TEST(MetricTable, ARateOfTheWholeTrainingIsNoStepTime) {
  MetricTable table;
  for (int step = 5; step <= 60; step += 5) {
    table.add("train/loss", step, 3.0 / step, 100 + 0.03 * step);
    table.add("train/num_input_tokens_seen", step, 64 * step, 100 + 0.03 * step);
    if (step % 20 == 0) table.add("train/num_input_tokens_seen", step, 64 * step, 100.01 + 0.03 * step);
  }
  table.add("train/train_runtime", 60, 8.4, 102);
  table.add("train/train_steps_per_second", 60, 7.1, 102);
  table.add("train/train_tokens_per_second", 60, 458, 102);
  const auto steps = table.take_steps();
  ASSERT_EQ(steps.records.size(), 12U);
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(steps.records[i].tokens, 64) << i;
    EXPECT_TRUE(i == 0 || std::abs(steps.records[i].dt_ms - 30) < 0.01) << i;
  }
  EXPECT_EQ(steps.tokens_per_step, 64);
}

TEST(MetricTable, RowsThatAreSentTogetherShareTheTimeSinceTheLast) {
  MetricTable table;
  for (int i = 0; i < 12; ++i) table.add("loss", 5 * (i + 1), 3, 100 + i / 3 + 1e-5 * (i % 3));  // three a second
  const auto steps = table.take_steps();
  ASSERT_EQ(steps.records.size(), 12U);
  EXPECT_TRUE(is_missing(steps.records[2].dt_ms));
  for (std::size_t i = 3; i < 12; ++i) EXPECT_NEAR(steps.records[i].dt_ms, 1000 / 15.0, 0.01) << i;
  for (int step = 1; step <= 100; ++step) table.add("loss", step, 3, 1000 + 2e-4 * step);  // written down afterwards
  for (const StepRecord& record : table.take_steps().records) EXPECT_TRUE(is_missing(record.dt_ms));
}

// mlflow.log_metric() without a step.
TEST(MetricTable, CallsWithoutAStepAreCounted) {
  const auto fill = [](MetricTable& table, int from, int to) {
    for (int i = from; i < to; ++i) {
      table.add("loss", 0, 3.0 / (i + 1), 100 + i);
      if (i % 4 == 3) table.add("val_loss", 0, 2.5, 100.5 + i);
    }
  };
  MetricTable whole;
  fill(whole, 0, 12);
  CallCount count;
  whole.number_calls(count);
  const auto steps = whole.take_steps();
  ASSERT_EQ(steps.records.size(), 12U);
  for (std::int64_t i = 0; i < 12; ++i) {
    const StepRecord& record = steps.records[static_cast<std::size_t>(i)];
    EXPECT_EQ(record.step, i);
    EXPECT_EQ(is_missing(record.val_loss), i % 4 != 3) << i;
  }
  CallCount so_far;
  std::int64_t last = -1;
  for (int i = 0; i < 12; i += 3) {
    MetricTable piece;
    fill(piece, i, i + 3);
    piece.number_calls(so_far);
    for (const StepRecord& record : piece.take_steps().records) EXPECT_EQ(record.step, ++last);
  }
  MetricTable stepped;
  for (const int step : {0, 0, 5}) stepped.add("loss", step, 3, 100 + step);
  CallCount none;
  stepped.number_calls(none);
  EXPECT_EQ(stepped.take_steps().records.back().step, 5);
}

TEST(MetricTable, TheHoursBeforeARunGoesOnAreNoStepTime) {
  MetricTable table;
  for (const double begun : {100.0, 8000.0})
    for (int step = begun > 100 ? 6 : 1; step <= 10; ++step) table.add("loss", step, begun / step, begun + step);
  for (const StepRecord& record : table.take_steps().records)
    EXPECT_TRUE(is_missing(record.dt_ms) || std::abs(record.dt_ms - 1000) < 1e-6) << record.step << " " << record.dt_ms;
}

TEST(MetricTable, WallTimesThatWereSentInOneGoAreNoStepTimes) {
  MetricTable table;
  for (int step = 1; step <= 100; ++step) table.add("loss", step, 3, 1000);
  for (const StepRecord& record : table.take_steps().records) EXPECT_TRUE(is_missing(record.dt_ms));
}

}  // namespace
}  // namespace stepladder
