// Tables: columns that never change, and a rate without the tokens of a step.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "storage/wording.h"
#include "tests/importers/told.h"

namespace stepladder {
namespace {

using SortedJson = nlohmann::json;

TEST(Csv, ColumnsThatNeverChangeAreValuesOfTheRecipe) {
  const Told told = import_text(
      "step,loss,dt_ms,batch_size,lr,optimizer,gpu_mem,empty\n"
      "1,5.0,100,16,3e-4,muon,100,\n"
      "2,4.9,101,16,3e-4,muon,120,\n"
      "3,4.8,100,16,3e-4,muon,130,\n",
      {}, "t.csv");
  ASSERT_EQ(told.runs.size(), 1u);
  const SortedJson recipe = SortedJson::parse(told.runs.front().run.recipe);
  EXPECT_EQ(recipe, (SortedJson{{"log_family", "csv"}, {"batch_size", 16}, {"lr", 3e-4}, {"optimizer", "muon"}}));
  EXPECT_DOUBLE_EQ(told.runs.front().steps.back().lr, 3e-4) << "a step's value too";
}

TEST(Csv, EachRunOfATableHasItsOwnConstants) {
  const Told told = import_text(
      "run,step,loss,batch_size\n"
      "a,1,5,16\nb,1,5,32\na,2,4,16\nb,2,4,32\na,3,3,16\nb,3,3,64\n",
      {}, "t.csv");
  ASSERT_EQ(told.runs.size(), 2u);
  EXPECT_EQ(SortedJson::parse(told.runs[0].run.recipe).value("batch_size", 0), 16);
  EXPECT_FALSE(SortedJson::parse(told.runs[1].run.recipe).contains("batch_size"));
}

TEST(Csv, AQuotedTextIsValidJson) {
  const Told told = import_text("step,loss,note\n1,5,\"a \"\"b\"\" \\c\"\n2,4,\"a \"\"b\"\" \\c\"\n", {}, "t.csv");
  ASSERT_EQ(told.runs.size(), 1u);
  EXPECT_TRUE(SortedJson::accept(told.runs.front().run.recipe)) << told.runs.front().run.recipe;
}

TEST(Csv, ARateIsKeptWhenTheTokensOfAStepAreUnknown) {
  const Told told = import_text("step,loss,tokens_per_sec\n1,5,1000\n2,4.9,1010\n3,4.8,1020\n", {}, "t.csv");
  ASSERT_EQ(told.runs.size(), 1u);
  const stepladder::Run& run = told.runs.front().run;
  EXPECT_EQ(run.tokens_per_step, 0);
  EXPECT_DOUBLE_EQ(run.printed.tokens_per_s, 1010);
  EXPECT_EQ(run.printed.unit, "tokens/s");
  EXPECT_TRUE(told.noted("whose unit can't be checked"));
}

// The value of the second step, whose cell is `cell`; `missing` if it was left out. The table has decimal points.
double second(std::string_view column, std::string_view cell, double StepRecord::*value) {
  std::string text = "step,loss," + std::string(column) + "\n";
  for (int step = 1; step < 9; ++step)
    text += std::to_string(step) + ",4." + std::to_string(step) + ",\"" + std::string(cell) + "\"\n";
  const Told told = import_text(text, {.tokens_per_step = 32768}, "t.csv");
  if (told.runs.size() != 1 || told.runs.front().steps.size() != 8) return -1;
  return told.runs.front().steps[1].*value;
}

TEST(Csv, CellsHaveUnitsAsTheNumbersOfALogDo) {
  struct Case {
    std::string_view column, cell;
    double ms;
  };
  const Case cases[] = {
      {"dt", "500ms", 500},
      {"dt", "500.1 ms", 500.1},
      {"dt", "0.5s", 500},
      {"dt", "0.5 sec", 500},
      {"dt_ms", "500 ms", 500},
      {"Step Time (s)", "0.5s", 500},
      {"step_time", "00:01:30", 90'000},
      {"step time [ms]", "1,500", 1500},
      {"step time [ms]", "1 500.5", 1500.5},
      {"step time [ms]", "1'500", 1500},
      {"step time [ms]", "tensor(500.5)", 500.5},
      {"dt_ms", "0.5 s", missing},  // two units
      {"dt_ms", "5 GB", missing},
      {"dt_ms", "5x", missing},
      {"dt_ms", "~500", missing},
      {"dt_ms", "2026-05-01", missing},
      {"dt_ms", "1.2.3", missing},
      {"dt_ms", "5/100", missing},
  };
  for (const auto& [column, cell, ms] : cases) {
    SCOPED_TRACE(std::string(column) + " " + std::string(cell));
    const double read = second(column, cell, &StepRecord::dt_ms);
    if (is_missing(ms))
      EXPECT_TRUE(is_missing(read)) << read;
    else
      EXPECT_DOUBLE_EQ(read, ms);
  }
  EXPECT_TRUE(is_missing(second("lr", "3e-4%", &StepRecord::lr)));
  EXPECT_TRUE(is_missing(second("grad_norm", "1.2 GB", &StepRecord::grad_norm)));
  EXPECT_DOUBLE_EQ(second("lr", "3e-4", &StepRecord::lr), 3e-4);
}

TEST(Csv, ARateOfThousandsIsReadLikeOneInFull) {
  for (const std::string_view cells :
       {"65.536k", "65536", "\"65,536\"", "65.536 k", "65_536", "65.536k tok/s", "65.536 ktok/s"}) {
    std::string text = "step,loss,dt_ms,toks_per_sec\n";
    for (int step = 1; step < 9; ++step)
      text += std::to_string(step) + ",4." + std::to_string(step) + ",500.25," + std::string(cells) + "\n";
    const Told told = import_text(text, {.tokens_per_step = 32768}, "t.csv");
    ASSERT_EQ(told.runs.size(), 1u) << cells;
    EXPECT_NEAR(told.runs.front().run.printed.tokens_per_s, 65536, 0.5) << cells;
  }
}

TEST(Csv, ACellThatCantBeReadIsNamedAndTheRestIsKept) {
  const Told told = import_text("step,loss,dt_ms\n1,5,fast\n2,4.9,100\n3,oops,101\n4,4.7,99\n", {}, "t.csv");
  ASSERT_EQ(told.runs.size(), 1u);
  ASSERT_EQ(told.runs.front().steps.size(), 4u);
  EXPECT_TRUE(is_missing(told.runs.front().steps[2].loss));
  EXPECT_DOUBLE_EQ(told.runs.front().steps[2].dt_ms, 101);
  EXPECT_TRUE(told.noted("'fast' in the column dt_ms is not a number"));
  EXPECT_TRUE(told.noted("'oops' in the column loss is not a number"));
  try {
    import_text("step,loss\nx,5\ny,4\n", {.format = "csv"}, "t.csv");
    FAIL();
  } catch (const ImportError& error) {
    EXPECT_STREQ(
        error.what(),
        "has a header but no row with a step and a number: line 2 has no step number, but 'x' in the column step");
  }
}

TEST(Csv, UnitsThatChangeFromCellToCell) {
  const Told told = import_text("step,loss,dt\n1,5,900ms\n2,4.9,1.2s\n3,4.8,1000\n4,4.7,800 ms\n", {}, "t.csv");
  ASSERT_EQ(told.runs.size(), 1u);
  const std::vector<StepRecord>& steps = told.runs.front().steps;
  EXPECT_DOUBLE_EQ(steps[0].dt_ms, 900);
  EXPECT_DOUBLE_EQ(steps[1].dt_ms, 1200);
  EXPECT_TRUE(is_missing(steps[2].dt_ms)) << "of which unit?";
  EXPECT_DOUBLE_EQ(steps[3].dt_ms, 800);
  EXPECT_TRUE(told.noted("'1000' in the column dt has no unit, unlike the cells above it"));
}

TEST(Csv, CommasAndPointsAreWhatTheTableShowsThemToBe) {
  const auto losses = [](std::string_view text) {
    std::vector<double> all;
    const Told told = import_text(text, {}, "t.csv");
    for (const ToldRun& run : told.runs)
      for (const StepRecord& step : run.steps) all.push_back(step.loss);
    return all;
  };
  using Losses = std::vector<double>;
  EXPECT_EQ(losses("step;loss;dt_ms\n1;10,691;500,27\n2;10,58;500,3\n"), (Losses{10.691, 10.58}));
  EXPECT_EQ(losses("step;loss;dt_ms\n1;10.691;500.27\n2;10.58;500.3\n"), (Losses{10.691, 10.58}));
  EXPECT_EQ(losses("step;loss;dt_ms\n1;1.234,5;500,27\n2;10,58;500,3\n"), (Losses{1234.5, 10.58}));
  EXPECT_EQ(losses("step\tloss\tdt_ms\n1\t10,6911\t500,27\n2\t10,58\t500,3\n"), (Losses{10.6911, 10.58}));
  EXPECT_EQ(losses("step,loss,dt_ms\n1,\"1,069.5\",500.2\n2,\"1,058\",500.3\n"), (Losses{1069.5, 1058}));
  // Either could be meant, so neither is read.
  const Told told = import_text("step,loss,dt_ms\n1,\"3,141\",500\n2,\"3,139\",501\n", {}, "t.csv");
  ASSERT_EQ(told.runs.size(), 1u);
  EXPECT_TRUE(is_missing(told.runs.front().steps[0].loss));
  EXPECT_TRUE(told.noted("'3,141' in the column loss may be 3.141 or 3141"));
}

TEST(Csv, AUnitInAColumnsNameIsReadInAnySpelling) {
  for (const std::string_view name :
       {"Step Time (s)", "Step Time [s]", "step_time{s}", "Step Time <s>", "\"step time, s\"", "Step Time / s",
        "step time in s", "step_time_s", "Step Time (in seconds)", "Step Time [sec.]", "Step Time: s", "Step Time | s",
        "Step Time [s/step]", "Step Time (seconds per step)", "Step Time (train) [s]", "dt [s]", "Iteration Time[s]"}) {
    const Told told = import_text(
        "Iteration,Train Loss (nats)," + std::string(name) + "\n1,5,0.5\n2,4.9,0.51\n3,4.8,0.5\n", {}, "t.csv");
    ASSERT_EQ(told.runs.size(), 1u) << name;
    ASSERT_EQ(told.runs.front().steps.size(), 3u) << name;
    EXPECT_DOUBLE_EQ(told.runs.front().steps[1].dt_ms, 510) << name;
    EXPECT_DOUBLE_EQ(told.runs.front().steps[1].loss, 4.9) << name;
  }
  for (const std::string_view name : {"Throughput (ktok/s)", "Throughput [ktok/s]", "throughput {k tok/s}",
                                      "Throughput [k tokens/s]", "Throughput (k tokens per second)", "ktok / s"}) {
    std::string text = "step,loss,dt_ms," + std::string(name) + "\n";
    for (int step = 1; step < 9; ++step)
      text += std::to_string(step) + ",4." + std::to_string(step) + ",500.25,65.536\n";
    const Told told = import_text(text, {.tokens_per_step = 32768}, "t.csv");
    ASSERT_EQ(told.runs.size(), 1u) << name;
    EXPECT_NEAR(told.runs.front().run.printed.tokens_per_s, 65536, 0.5) << name;
  }
}

TEST(Csv, WordsInBracketsSayMoreAboutTheColumn) {
  const Told told = import_text(
      "step,loss (val),loss [train],step time (data) [ms],lr (x1e-4)\n1,6,5,7,3\n2,5.9,4.9,8,3\n", {}, "t.csv");
  ASSERT_EQ(told.runs.size(), 1u);
  const StepRecord& step = told.runs.front().steps[0];
  EXPECT_DOUBLE_EQ(step.loss, 5);
  EXPECT_DOUBLE_EQ(step.val_loss, 6);
  EXPECT_TRUE(is_missing(step.dt_ms)) << "the time of loading data is no step's";
  EXPECT_TRUE(is_missing(step.lr));
}

TEST(Csv, OtherColumnsHaveUnitsToo) {
  const Told told = import_text("step,loss,mfu,mem\n1,5,41.2%,1.5k\n2,4.9,41.5 %,1600\n3,4.8,42%,2.1k\n", {}, "t.csv");
  ASSERT_EQ(told.runs.size(), 1u);
  const auto& metrics = told.runs.front().metrics;
  ASSERT_EQ(metrics.count("mfu"), 1u);
  EXPECT_DOUBLE_EQ(metrics.at("mfu")[1].value, 41.5);
  EXPECT_DOUBLE_EQ(metrics.at("mem")[2].value, 2100);
}

std::string steps_of(std::string_view head, std::int64_t first = 1) {
  std::string text;
  for (std::int64_t step = first; step < first + 3; ++step)
    text += fmt::format("{},{},{}.5,100\n", head, step, 9 - step);
  return text;
}

std::vector<std::string> stages_of(const Told& told) {
  std::vector<std::string> stages;
  for (const ToldRun& run : told.runs) stages.push_back(run.run.stage);
  return stages;
}

TEST(Csv, CommentsAboveTheHeaderAreSkipped) {
  for (const char* comments :
       {"# loss, step and time, as printed\n", "# a; b = 4, loss: dt_ms\n#\n", "#step,loss,dt_ms,x\n"}) {
    const Told told =
        import_text(std::string(comments) + "step,loss,dt_ms\n1,5,100\n# a remark\n2,4,100\n", {}, "t.csv");
    ASSERT_EQ(told.runs.size(), 1u) << comments;
    ASSERT_EQ(told.runs.front().steps.size(), 2u) << comments;
    EXPECT_DOUBLE_EQ(told.runs.front().steps[1].loss, 4) << comments;
  }
}

TEST(Csv, EveryColumnThatNamesRunsMakesSeveral) {
  for (const char* column : {"stage", "variant", "name", "rung", "seed", "repeat", "run", "experiment", "Run ID",
                             "Run Name", "config", "optimizer", "trial_id"}) {
    const Told told = import_text(
        std::string(column) + ",step,loss,dt_ms\n" + steps_of("7") + steps_of("b2") + steps_of("7", 4), {}, "t.csv");
    ASSERT_EQ(told.runs.size(), 2u) << column;
    EXPECT_EQ(told.runs[0].steps.size(), 6u) << column;
    EXPECT_EQ(told.runs[1].steps.size(), 3u) << column;
    EXPECT_NE(told.runs[0].run.stage, told.runs[1].run.stage) << column;
  }
  const Told told = import_text("rung,stage,title,seed,step,loss,dt_ms\n" + steps_of("0,baseline,Baseline,1") +
                                    steps_of("0,baseline,Baseline,2") + steps_of("1,odd,Odd change,1"),
                                {}, "t.csv");
  EXPECT_EQ(stages_of(told), (std::vector<std::string>{"baseline", "baseline", "odd"}));
  EXPECT_EQ(told.rungs, (std::vector<int>{0, 0, 1}));
  EXPECT_EQ(SortedJson::parse(told.runs[1].run.recipe).value("seed", 0), 2);
  EXPECT_EQ(import_text("stage,step,loss,dt_ms\n" + steps_of("baseline") + steps_of("tf32"), {}, "t.csv").rungs,
            (std::vector<int>{0, 1}));
  EXPECT_TRUE(import_text("variant,step,loss,dt_ms\n" + steps_of("a") + steps_of("b"), {}, "t.csv").rungs.empty());
}

TEST(Csv, OfLightningsColumnsTheStepsCount) {
  for (const char* columns : {"epoch,lr-AdamW,step,train_loss_epoch,train_loss_step",
                              "epoch,lr-AdamW,step,train_loss_step,train_loss_epoch"}) {
    const bool is_last = std::string_view(columns).ends_with("step");
    std::string text = std::string(columns) + "\n";
    for (int i = 1; i < 5; ++i)
      text += fmt::format("0,1e-4,{},{}\n", i, is_last ? fmt::format(",{}.5", 9 - i) : fmt::format("{}.5,", 9 - i));
    text += is_last ? "0,,4,7.25,\n" : "0,,4,,7.25\n";
    const Told told = import_text(text, {}, "t.csv");
    ASSERT_EQ(told.runs.size(), 1u) << columns;
    EXPECT_DOUBLE_EQ(told.runs[0].steps.at(1).loss, 7.5) << columns;
    EXPECT_DOUBLE_EQ(told.runs[0].steps.at(3).loss, 5.5) << columns;
    EXPECT_DOUBLE_EQ(told.runs[0].steps.at(1).lr, 1e-4) << columns;
  }
}

TEST(Csv, TheRateOfOneDeviceIsNotTheRuns) {
  for (const char* name : {"tokens_per_second_per_gpu", "tok/s/gpu", "tps_per_device"}) {
    std::string text = fmt::format("step,loss,{},dt_ms\n", name);
    for (int i = 1; i < 9; ++i) text += fmt::format("{},{}.5,{},{}\n", i, 19 - i, 65'536'000 / (120 + i), 120 + i);
    const Told told = import_text(text, {}, "t.csv");
    ASSERT_EQ(told.runs.size(), 1u) << name;
    EXPECT_EQ(told.runs[0].run.tokens_per_step, 0) << name;
  }
}

TEST(Csv, TimesOfDayAreAClock) {
  for (const char* name : {"time", "timestamp", "elapsed_time"}) {
    std::string text = fmt::format("step,loss,{}\n", name);
    for (int i = 1; i < 9; ++i) text += fmt::format("{},{}.5,2026-05-01T10:{:02}:00Z\n", i, 19 - i, i);
    const Told told = import_text(text, {}, "t.csv");
    EXPECT_NEAR(told.runs.at(0).steps.at(3).dt_ms, 60000, 1) << name;
    EXPECT_FALSE(told.noted("left out")) << name;
  }
}

TEST(Csv, ALossInBitsIsAMetric) {
  const Told told =
      import_text("step,train loss (bits/byte),step time [ms]\n10,2.65,121\n20,2.61,125\n30,2.55,122\n", {}, "t.csv");
  EXPECT_TRUE(is_missing(told.runs.at(0).steps.at(1).loss));
  EXPECT_DOUBLE_EQ(told.runs[0].steps[1].dt_ms, 125);
}

TEST(Csv, Utf16IsRecognised) {
  std::string text = "\xFF\xFE";
  for (const char c : std::string("step;loss;lr\r\n1;10,924;0,0003\r\n2;10,836;0,0003\r\n")) text += {c, '\0'};
  const Told told = import_text(text, {}, "t.csv");
  ASSERT_EQ(told.runs.size(), 1u);
  EXPECT_DOUBLE_EQ(told.runs[0].steps.at(1).loss, 10.836);
}

TEST(Csv, OneRunKeepsItsStepsInOne) {
  const Told phases = import_text("stage,step,loss,dt_ms\n" + steps_of("warmup") + steps_of("decay", 4), {}, "t.csv");
  ASSERT_EQ(phases.runs.size(), 1u);
  EXPECT_EQ(phases.runs[0].steps.size(), 6u);
  EXPECT_EQ(phases.runs[0].run.stage, "");
  EXPECT_TRUE(phases.noted("the column stage changes while the steps go on"));
  const Told one = import_text("stage,seed,step,loss,dt_ms\n" + steps_of("tf32,1"), {}, "t.csv");
  EXPECT_EQ(stages_of(one), std::vector<std::string>{""});
  const Told split = import_text("stage,step,loss,dt_ms\n" + steps_of("train") + steps_of("val"), {}, "t.csv");
  ASSERT_EQ(split.runs.size(), 1u);
  EXPECT_DOUBLE_EQ(split.runs[0].steps[1].val_loss, 7.5);
}

TEST(Csv, ARowOfAValidationSplitHasTheValidationLoss) {
  for (const char* split : {"split,val", "phase,eval", "mode,valid", "dataset,Validation", "stage,test"}) {
    const std::string names(split);
    const std::string column = names.substr(0, names.find(',')), word = names.substr(names.find(',') + 1);
    const Told told = import_text("step," + column + ",loss,ms,acc\n1,train,5,100,0.1\n2,train,4,100,0.2\n2," + word +
                                      ",4.5,900,0.15\n3,train,3,100,0.3\n",
                                  {}, "t.csv");
    ASSERT_EQ(told.runs.size(), 1u) << split;
    const ToldRun& run = told.runs.front();
    ASSERT_EQ(run.steps.size(), 3u) << split;
    EXPECT_DOUBLE_EQ(run.steps[1].loss, 4) << split;
    EXPECT_DOUBLE_EQ(run.steps[1].val_loss, 4.5) << split;
    EXPECT_DOUBLE_EQ(run.steps[1].dt_ms, 100) << split;
    EXPECT_EQ(run.metrics.at("acc").size(), 3u) << split;
    EXPECT_EQ(run.metrics.at("val_acc").size(), 1u) << split;
  }
  const Told lengthy =
      import_text("step,split,metric,value\n1,train,loss,5\n2,train,loss,4\n2,val,loss,4.5\n", {}, "t.csv");
  ASSERT_EQ(lengthy.runs.size(), 1u);
  EXPECT_DOUBLE_EQ(lengthy.runs.front().steps.at(1).loss, 4);
  EXPECT_DOUBLE_EQ(lengthy.runs.front().steps.at(1).val_loss, 4.5);
}

TEST(Csv, OfRanksTheLowestCounts) {
  for (const char* column : {"rank", "local_rank"}) {
    const Told told = import_text(std::string(column) + ",step,loss\n0,1,5\n1,1,6\n1,2,5.5\n0,2,4\n", {}, "t.csv");
    ASSERT_EQ(told.runs.size(), 1u) << column;
    ASSERT_EQ(told.runs.front().steps.size(), 2u) << column;
    EXPECT_DOUBLE_EQ(told.runs.front().steps[0].loss, 5) << column;
    EXPECT_DOUBLE_EQ(told.runs.front().steps[1].loss, 4) << column;
    EXPECT_TRUE(told.noted("several ranks")) << column;
  }
}

TEST(Csv, ColumnsThatCannotBeTakenAtTheirWordAreNoted) {
  EXPECT_TRUE(import_text("epoch,batch,loss\n0,0,5\n0,20,4\n1,0,3\n", {}, "t.csv").noted("each row is a step here"));
  const Told twice = import_text("step,loss,acc,loss,acc\n1,5,0.1,6,0.2\n2,4,0.2,5,0.3\n", {}, "t.csv");
  EXPECT_TRUE(twice.noted("two columns are named"));
  ASSERT_EQ(twice.runs.size(), 1u);
  EXPECT_DOUBLE_EQ(twice.runs.front().steps[0].loss, 5);
  EXPECT_EQ(twice.runs.front().metrics.at("acc").size(), 2u);
}

TEST(Importers, WhatHoldsNoTrainingIsRecognisedAndNotOffered) {
  for (const Importer& importer : all_importers())
    EXPECT_EQ(importer.has_runs, importer.id != "profiler-table" && importer.id != "mfu-table") << importer.id;
}

TEST(Csv, RunsThatOnlyTheLearningRateTellsApartAreRefused) {
  const std::string header = "lr,step,loss\n", first = "0.001,10,5\n0.001,20,4\n0.001,30,3\n";
  EXPECT_THROW(import_text(header + first + "0.0003,10,6\n0.0003,20,5\n", {}, "t.csv"), ImportError);
  EXPECT_EQ(import_text(header + first + "0.001,20,4\n0.001,30,3\n", {}, "t.csv").runs.size(), 1u) << "resumed";
  EXPECT_EQ(import_text(header + "0.001,10,5\n0.002,20,4\n0.003,30,3\n0.002,20,4\n", {}, "t.csv").runs.size(), 1u);
}

TEST(Csv, RowsThatNoColumnCountsAreStepsAndThatIsNoted) {
  EXPECT_TRUE(import_text("tokens,loss\n100,5\n200,4\n", {}, "t.csv").noted("no column counts steps"));
  EXPECT_FALSE(import_text("step,loss\n1,5\n2,4\n", {}, "t.csv").noted("no column counts steps"));
}

// What a reader has passed on while the table grows, before its end.
Told follow_text(std::string_view text, std::string_view& refusal) {
  ImportOptions options{.live = true};
  Told told;
  MemoryInput input(text, "t.csv");
  const auto reader = importer_for(input, options).reader("t.csv", options, told);
  try {
    reader->take(text);
  } catch (const ImportError& error) {
    refusal = "in turn";
    EXPECT_NE(std::string_view(error.what()).find(refusal), std::string_view::npos);
  }
  return told;
}

TEST(Csv, ATableThatNamesItsRunsIsFollowedRowByRow) {
  std::string_view refusal;
  std::string text = "run,step,loss\n";
  for (const char* run : {"a", "b"})
    for (int i = 1; i <= 8; ++i) text += std::string(run) + "," + std::to_string(i) + ",5.5\n";
  const Told told = follow_text(text, refusal);
  ASSERT_EQ(told.runs.size(), 2u);
  EXPECT_EQ(told.runs[0].steps.size(), 8u);
  EXPECT_GT(told.runs[1].steps.size(), 4u);
  EXPECT_EQ(told.runs[1].run.stage, "b");
  EXPECT_TRUE(refusal.empty());
  follow_text("run,step,loss\na,1,5\nb,1,5\na,2,4\nb,2,4\n", refusal);
  EXPECT_EQ(refusal, "in turn");
}

TEST(Csv, ATableThatNamesItsMetricsIsFollowedRowByRow) {
  std::string_view refusal;
  std::string text = "step,metric,value\n";
  for (int i = 1; i <= 8; ++i)
    text += std::to_string(i) + ",loss,5.5\n" + std::to_string(i) + ",lr,0.001\n" + std::to_string(i) + ",acc,0.5\n";
  const Told told = follow_text(text, refusal);
  ASSERT_EQ(told.runs.size(), 1u);
  ASSERT_GT(told.runs[0].steps.size(), 4u);
  EXPECT_EQ(told.runs[0].steps[2].loss, 5.5);
  EXPECT_EQ(told.runs[0].steps[2].lr, 0.001);
  EXPECT_FALSE(told.runs[0].metrics.at("acc").empty());
}

TEST(Csv, StepsThatBeginAgainWithEachEpochGoOn) {
  const Told told = import_text("epoch,step,loss\n0,0,9\n0,10,8\n0,20,7\n1,0,6\n1,10,5\n1,20,4\n2,0,3\n", {}, "t.csv");
  ASSERT_EQ(told.runs.size(), 1u);
  ASSERT_EQ(told.runs[0].steps.size(), 7u);
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(told.runs[0].steps[i].step, static_cast<std::int64_t>(10 * i));
    EXPECT_EQ(told.runs[0].steps[i].loss, 9.0 - static_cast<double>(i));
  }
  EXPECT_TRUE(told.noted("begins again with each epoch"));
  EXPECT_EQ(import_text("epoch,step,loss\n0,10,8\n1,20,7\n0,10,6\n1,20,5\n", {}, "t.csv").runs[0].steps.back().step, 20)
      << "resumed";
}

}  // namespace
}  // namespace stepladder
