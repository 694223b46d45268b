#include "storage/analysis/judgement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <string>

namespace stepladder {
namespace {

// Three rungs at 100, 50 and 25 ms a step.
class Rungs : public testing::Test {
 protected:
  Rungs() {
    for (int rung = 0; rung < 3; ++rung) {
      runs_[rung].id = rung + 1;
      runs_[rung].rung = rung;
      runs_[rung].tokens_per_step = 1000;
      for (std::int64_t step = 1; step <= 60; ++step) {
        series_[rung].append({.step = step,
                              .loss = 3 - 0.01 * static_cast<double>(step) + (rung == 2 ? 0.5 : 0),
                              .dt_ms = 100.0 / (1 << rung) + 0.01 * static_cast<double>(step % 3),
                              .tokens = 1000});
      }
      summaries_[rung] = summarise(series_[rung], -1, 1000);
      measured_.push_back({&runs_[rung], &summaries_[rung], &series_[rung]});
    }
  }
  stepladder::Run runs_[3];
  Series series_[3];
  Summary summaries_[3];
  std::vector<MeasuredRun> measured_;
};

TEST_F(Rungs, FactorsAreOverTheFirstUnlessAnotherIsChosen) {
  const std::vector<RungJudgement> rungs = judge_rungs(measured_, {});
  EXPECT_EQ(rungs[0].over_baseline.factor, 1);
  EXPECT_NEAR(rungs[1].over_baseline.factor, 2, 0.01);
  EXPECT_NEAR(rungs[2].over_baseline.factor, 4, 0.01);
  EXPECT_NEAR(rungs[2].over_previous.factor, 2, 0.01);
  EXPECT_TRUE(is_missing(rungs[0].over_previous.factor));
  EXPECT_EQ(rungs[2].loss.verdict, LossVerdict::worse);
}

// Runs of no ladder, or of several, have the same numbers of rungs.
TEST_F(Rungs, AVerdictOverTheBaselineDoesNotDependOnTheRunBefore) {
  for (stepladder::Run& run : runs_) run.rung = 0;
  series_[2].dt_ms = series_[1].dt_ms;
  summaries_[2] = summarise(series_[2], -1, 1000);
  std::vector<Subject> subjects;
  for (const MeasuredRun& run : measured_) subjects.push_back({.rung = run.run->rung, .runs = {run}});
  const std::vector<RungJudgement> rungs = judge(subjects, 0, {});
  EXPECT_EQ(rungs[1].over_baseline.verdict, Verdict::faster);
  EXPECT_EQ(rungs[2].over_previous.verdict, Verdict::same);
  EXPECT_EQ(rungs[2].over_baseline.verdict, Verdict::faster);
}

TEST_F(Rungs, OnlyARunWithAClockSaysHowLongARepeatTakes) {
  runs_[0].started_at = 100, runs_[0].ended_at = 160;
  const std::vector<RungJudgement> rungs = judge_rungs(measured_, {});
  EXPECT_EQ(rungs[0].run_seconds, 60);
  EXPECT_TRUE(is_missing(rungs[1].run_seconds)) << "an imported log";
}

TEST_F(Rungs, AFactorOfAThousandBetweenFilesIsOneOfUnits) {
  for (double& dt : series_[2].dt_ms) dt /= 40;  // 0.025 of a millisecond: seconds, labelled ms
  summaries_[2] = summarise(series_[2], -1, 1000);
  for (stepladder::Run& run : runs_) run.source = "import";
  for (stepladder::Run& run : runs_) run.status = RunStatus::finished;
  const auto flag = [](const RungJudgement& rung) {
    const auto found = std::ranges::find(rung.flags, FlagId::unit_doubted, &Flag::id);
    return found == rung.flags.end() ? std::string() : found->why;
  };
  const auto measured = [&](double divided) {
    series_[1] = {};
    for (std::int64_t step = 1; step <= 60; ++step)
      series_[1].append(
          {.step = step, .loss = 3, .dt_ms = (100 + 0.01 * static_cast<double>(step % 3)) / divided, .tokens = 1000});
    summaries_[1] = summarise(series_[1], -1, 1000);
    return judge_rungs(measured_, {})[1];
  };
  for (const double units : {1000.0, 1300.0, 1e-3, 60.0, 1e6}) {
    const RungJudgement rung = measured(units);
    EXPECT_NE(flag(rung), "") << units;
    EXPECT_EQ(rung.trust, Trust::doubtful) << units;
    EXPECT_EQ(rung.over_baseline.trust, Trust::doubtful) << units;
  }
  for (const double gain : {1.27, 20.0, 50.0, 100.0}) EXPECT_EQ(flag(measured(gain)), "") << gain;
  for (stepladder::Run& run : runs_) run.source = "launched";
  EXPECT_EQ(flag(measured(1000)), "") << "our own timer has one unit";
}

TEST_F(Rungs, AnyRepeatThatStallsDoubtsAGainOfTheMedians) {
  for (stepladder::Run& run : runs_) run.source = "import", run.status = RunStatus::finished;
  series_[1] = {};
  for (std::int64_t step = 1; step <= 60; ++step)
    series_[1].append({.step = step,
                       .loss = 3 - 0.01 * static_cast<double>(step),
                       .dt_ms = 80 + 0.0131 * static_cast<double>(step * 37 % 101),
                       .tokens = 1000});
  Series stalling = series_[1];
  for (std::size_t i = 0; i < stalling.size(); ++i)
    if (i % 5 > 2) stalling.dt_ms[i] += 85;
  summaries_[1] = summarise(series_[1], -1, 1000);
  const Summary of_stalling = summarise(stalling, -1, 1000);
  stepladder::Run second = runs_[1];
  second.id = 9;
  second.repeat = 1;
  const auto trust = [&] { return judge_rungs(measured_, {})[1].trust; };
  EXPECT_EQ(trust(), Trust::trusted);
  measured_.push_back({&second, &of_stalling, &stalling});
  EXPECT_EQ(trust(), Trust::doubtful);
  const RungJudgement rung = judge_rungs(measured_, {})[1];
  const auto flag = std::ranges::find(rung.flags, FlagId::uneven_steps, &Flag::id);
  ASSERT_NE(flag, rung.flags.end());
  EXPECT_TRUE(flag->why.starts_with("Repeat 2: By the median")) << flag->why;
}

TEST_F(Rungs, ALogThatJustEndsTellsTheSpeedButNoLoss) {
  for (stepladder::Run& run : runs_) run.source = "import", run.status = RunStatus::finished;
  Series series;
  for (std::int64_t step = 1; step <= 20; ++step)
    series.append({.step = step, .loss = 9, .dt_ms = 52 + 0.01 * static_cast<double>(step % 3), .tokens = 1000});
  const Summary summary = summarise(series, -1, 1000);
  stepladder::Run cut = runs_[1];
  cut.id = 9;
  cut.repeat = 1;
  cut.status = RunStatus::interrupted;
  const LossParity alone = judge_rungs(measured_, {})[1].loss;
  measured_.push_back({&cut, &summary, &series});
  const RungJudgement rung = judge_rungs(measured_, {})[1];
  EXPECT_EQ(rung.count.counted(), 2);
  EXPECT_NEAR(rung.step_ms(), 51, 0.1);
  EXPECT_EQ(rung.loss.tail_gap, alone.tail_gap);
  EXPECT_EQ(std::ranges::count(rung.flags, FlagId::not_repeated, &Flag::id), 0);
  cut.source = "launched";
  EXPECT_EQ(judge_rungs(measured_, {})[1].count.unfinished, 1);
  cut.source = "import";
  series = {};
  for (std::int64_t step = 1; step <= 8; ++step) series.append({.step = step, .loss = 9, .dt_ms = 52, .tokens = 1000});
  const Summary few = summarise(series, -1, 1000);
  measured_.back().summary = &few;
  EXPECT_EQ(judge_rungs(measured_, {})[1].count.unfinished, 1) << "too few steps";
}

TEST_F(Rungs, CopiesOfAFileCountAsOneRun) {
  std::list<stepladder::Run> copies;
  for (int rung = 0; rung < 2; ++rung) {
    runs_[rung].source = "import";
    runs_[rung].status = RunStatus::finished;
    for (int repeat = 1; repeat < 4; ++repeat) {
      stepladder::Run& copy = copies.emplace_back(runs_[rung]);
      copy.repeat = repeat;
      measured_.push_back({&copy, &summaries_[rung], &series_[rung]});
    }
  }
  const RungJudgement rung = judge_rungs(measured_, {})[1];
  EXPECT_EQ(rung.own_step.runs, 1U);
  EXPECT_EQ(rung.answer(), RungAnswer::faster_once);
  const auto flag = std::ranges::find(rung.flags, FlagId::not_repeated, &Flag::id);
  ASSERT_NE(flag, rung.flags.end());
  EXPECT_NE(flag->why.find("4 runs have the same figures to the last digit"), std::string::npos) << flag->why;
}

TEST_F(Rungs, ACopyThatWasCutIsNoRepeat) {
  Series whole, cut;
  for (std::int64_t step = 1; step <= 60; ++step) {
    const StepRecord record{.step = step, .loss = 3, .dt_ms = 50 + 0.01 * static_cast<double>(step * 37 % 101)};
    whole.append(record);
    if (step <= 45) cut.append(record);
  }
  std::list<stepladder::Run> imported;
  std::vector<MeasuredRun> all{measured_[0]};
  const Summary of_whole = summarise(whole, -1, 1000);
  Summary of_cut = summarise(cut, -1, 1000);
  for (const auto& [series, summary] : {std::pair{&whole, &of_whole}, std::pair{&cut, &std::as_const(of_cut)}}) {
    stepladder::Run& run = imported.emplace_back(runs_[1]);
    run.source = "import";
    run.status = RunStatus::finished;
    run.repeat = static_cast<int>(imported.size()) - 1;
    all.push_back({&run, summary, series});
  }
  EXPECT_EQ(judge_rungs(all, {})[1].count.copies, 1);
  cut.dt_ms[20] += 1e-3;
  of_cut = summarise(cut, -1, 1000);
  EXPECT_EQ(judge_rungs(all, {})[1].count.copies, 0);
}

TEST_F(Rungs, WhatDoesTheSameWorkHasNoEffect) {
  for (stepladder::Run& run : runs_) run.status = RunStatus::finished;
  series_[1] = series_[0];
  summaries_[1] = summarise(series_[1], -1, 1000);
  StepProfile before{.run = 1,
                     .steps = 5,
                     .operators = {{.part = "forward", .name = "aten::mm", .calls = 12},
                                   {.part = "backward", .name = "aten::mm", .calls = 24}}};
  StepProfile after = before;
  std::ranges::reverse(after.operators);  // by time
  const auto answer = [&] {
    measured_[0].profile = &before;
    measured_[1].profile = &after;
    return judge_rungs(measured_, {})[1].answer();
  };
  EXPECT_EQ(answer(), RungAnswer::no_effect);
  after.operators[0].calls = 25;
  EXPECT_EQ(answer(), RungAnswer::noise) << "another operator";
  after = {};
  EXPECT_EQ(answer(), RungAnswer::noise) << "no profile";
  after = before;
  series_[1].loss[7] = std::nextafter(series_[1].loss[7], 4);
  EXPECT_EQ(answer(), RungAnswer::noise) << "another loss";
  series_[1] = series_[0];
  for (double& dt : series_[1].dt_ms) dt /= 2;
  summaries_[1] = summarise(series_[1], -1, 1000);
  EXPECT_EQ(answer(), RungAnswer::faster_once) << "a time that differs is an effect";
}

TEST_F(Rungs, AFactorBetweenOtherNumbersOfDevicesIsDoubtful) {
  runs_[0].recipe = R"({"devices":1})";
  runs_[1].recipe = R"({"devices":8})";
  runs_[2].recipe = R"({"devices":1})";
  const std::vector<RungJudgement> rungs = judge_rungs(measured_, {});
  EXPECT_EQ(rungs[1].over_baseline.trust, Trust::doubtful);
  EXPECT_FALSE(rungs[1].over_baseline.is(Verdict::faster));
  EXPECT_NE(std::ranges::find(rungs[1].flags, FlagId::other_machine, &Flag::id), rungs[1].flags.end());
  EXPECT_EQ(rungs[2].over_baseline.trust, Trust::trusted);
}

TEST_F(Rungs, AFactorBetweenImportedModelsOfOtherSizesIsDoubtful) {
  const auto trust = [&](std::int64_t params, const char* recipe = "{}") {
    for (int rung = 0; rung < 2; ++rung) runs_[rung].source = "import";
    runs_[0].params = 124'000'000;
    runs_[0].recipe = R"({"vocab_size":50257})";
    runs_[1].params = params;
    runs_[1].recipe = recipe;
    return judge_rungs(measured_, {})[1];
  };
  const RungJudgement half = trust(62'000'000);
  EXPECT_FALSE(half.over_baseline.is(Verdict::faster));
  const auto flag = std::ranges::find(half.flags, FlagId::other_machine, &Flag::id);
  ASSERT_NE(flag, half.flags.end());
  EXPECT_NE(flag->why.find("the factor is also the model's: 124 M and 62.0 M parameters"), std::string::npos)
      << flag->why;
  const auto is_flagged = [&](const RungJudgement& rung) {
    return std::ranges::find(rung.flags, FlagId::other_machine, &Flag::id) != rung.flags.end();
  };
  EXPECT_FALSE(is_flagged(trust(110'000'000)));
  EXPECT_FALSE(is_flagged(trust(85'000'000, R"({"vocab_size":4096})"))) << "the vocabulary is what changed";
  runs_[0].recipe = R"({"n_layer":12, "n_embd":768})";
  const auto shaped = [&](const char* recipe) {
    runs_[0].params = runs_[1].params = 0;
    runs_[1].recipe = recipe;
    return is_flagged(judge_rungs(measured_, {})[1]);
  };
  EXPECT_TRUE(shaped(R"({"n_layer":6, "n_embd":768})"));
  EXPECT_TRUE(shaped(R"({"num_layers":12, "hidden_size":512})"));
  EXPECT_FALSE(shaped(R"({"n_layer":12, "n_embd":768})"));
  EXPECT_FALSE(shaped(R"({"n_layer":12})"));
  EXPECT_FALSE(is_flagged(trust(0)));
}

TEST_F(Rungs, WhatHasNoFactorSaysWhy) {
  runs_[0].status = RunStatus::failed;
  series_[0] = {};
  summaries_[0] = {};
  for (int rung = 1; rung < 3; ++rung) runs_[rung].status = RunStatus::finished;
  std::vector<RungJudgement> rungs = judge_rungs(measured_, {});
  EXPECT_EQ(rungs[0].why_untimed, "failed before a step");
  EXPECT_EQ(rungs[1].why_untimed, "");
  EXPECT_EQ(rungs[1].why_no_factor, "baseline: failed before a step");
  summaries_[0] = {.steps = 60, .untimed_steps = 60};
  runs_[0].status = RunStatus::finished;
  EXPECT_EQ(judge_rungs(measured_, {})[2].why_no_factor, "baseline: no step times");
  summaries_[0] = summaries_[1];
  series_[0] = series_[1];
  EXPECT_EQ(judge_rungs(measured_, {})[2].why_no_factor, "");
}

TEST_F(Rungs, RepeatsThatDisagreeManyFoldHaveNoIntervalAndSayWhy) {
  for (stepladder::Run& run : runs_) run.status = RunStatus::finished;
  std::vector<RungJudgement> rungs = judge_rungs(measured_, {});
  EXPECT_TRUE(rungs[1].step_time_ci95.known());
  EXPECT_EQ(rungs[1].why_no_interval, "");
  EXPECT_TRUE(rungs[1].each_tokens_per_s.empty()) << "one run";
  runs_[2].rung = 1;  // at 50 and 50/21 ms
  runs_[2].repeat = 1;
  series_[2] = {};
  for (std::int64_t step = 1; step <= 60; ++step)
    series_[2].append(
        {.step = step, .loss = 3, .dt_ms = (50 + 0.01 * static_cast<double>(step % 3)) / 21, .tokens = 1000});
  summaries_[2] = summarise(series_[2], -1, 1000);
  rungs = judge_rungs(measured_, {});
  EXPECT_FALSE(rungs[1].step_time_ci95.known());
  EXPECT_FALSE(rungs[1].rate_ci95(rungs[1].tokens_per_s).known());
  EXPECT_FALSE(rungs[1].over_baseline.ci95.known()) << "the factor and its bar say the same";
  EXPECT_EQ(rungs[1].why_no_interval, "2 runs, 21 x apart");
  ASSERT_EQ(rungs[1].each_tokens_per_s.size(), 2u);
  EXPECT_NEAR(rungs[1].each_tokens_per_s[1] / rungs[1].each_tokens_per_s[0], 21, 0.1);
  EXPECT_EQ(rungs[0].why_no_interval, "");
}

TEST_F(Rungs, NothingIsJudgedOfASubjectThatMixesSeveralThings) {
  std::vector<Subject> subjects;
  for (const MeasuredRun& run : measured_) subjects.push_back({.rung = run.run->rung, .runs = {run}});
  subjects[1].mixes = "batch 8, 16";
  std::vector<RungJudgement> rungs = judge(subjects, 0, {});
  EXPECT_TRUE(is_missing(rungs[1].over_baseline.factor));
  EXPECT_EQ(rungs[1].why_no_factor, "mixes batch 8, 16");
  EXPECT_EQ(rungs[1].loss.verdict, LossVerdict::not_comparable);
  EXPECT_NEAR(rungs[2].over_baseline.factor, 4, 0.01);
  rungs = judge(subjects, 1, {});
  EXPECT_TRUE(is_missing(rungs[2].over_baseline.factor));
  EXPECT_EQ(rungs[2].why_no_factor, "baseline mixes batch 8, 16");
}

TEST_F(Rungs, ASweepsRungsHaveNoPreviousOne) {
  for (int rung = 0; rung < 3; ++rung) {
    runs_[rung].source = "import";
    runs_[rung].title = "lr " + std::to_string(rung + 1);
    runs_[rung].recipe = "{\"lr\":" + std::to_string(rung + 1) + "}";
  }
  std::vector<RungJudgement> rungs = judge_rungs(measured_, {});
  EXPECT_TRUE(is_missing(rungs[2].over_previous.factor));
  EXPECT_NEAR(rungs[2].over_baseline.factor, 4, 0.01);
  EXPECT_TRUE(is_missing(judge_rungs(std::span(measured_).first(2), {})[1].over_previous.factor)) << "also of two";
  runs_[2].title = "another";
  EXPECT_NEAR(judge_rungs(measured_, {})[2].over_previous.factor, 2, 0.01);
}

TEST_F(Rungs, ARungWithoutAFinishedRunIsUnderWay) {
  for (stepladder::Run& run : runs_) run.status = RunStatus::finished;
  EXPECT_FALSE(judge_rungs(measured_, {})[2].is_under_way);
  runs_[2].status = RunStatus::running;
  EXPECT_TRUE(judge_rungs(measured_, {})[2].is_under_way);
  runs_[1].rung = 2;
  runs_[1].repeat = 1;
  EXPECT_FALSE(judge_rungs(measured_, {})[1].is_under_way) << "the finished repeat is what it is judged by";
}

TEST_F(Rungs, AChosenBaselineIsHeldAgainstThoseBelowItToo) {
  const std::vector<RungJudgement> rungs = judge_rungs(measured_, {}, 1);
  EXPECT_NEAR(rungs[0].over_baseline.factor, 0.5, 0.01);
  EXPECT_EQ(rungs[0].over_baseline.verdict, Verdict::slower);
  EXPECT_EQ(rungs[1].over_baseline.factor, 1);
  EXPECT_NEAR(rungs[2].over_baseline.factor, 2, 0.01);
  EXPECT_NEAR(rungs[1].over_previous.factor, 2, 0.01);
  EXPECT_EQ(rungs[0].loss.verdict, LossVerdict::same);
  EXPECT_EQ(rungs[2].loss_against, 1);
  EXPECT_EQ(judge_rungs(measured_, {}, 7, {.intervals = Intervals::no})[0].over_baseline.factor, 1)
      << "a rung that is not there";
  EXPECT_TRUE(judge_rungs({}, {}).empty());
}

// An A100's log and one that doesn't say where it ran: nobody knows whether the change made the difference.
TEST_F(Rungs, AFactorOverRunsThatMayBeElsewhereIsNoVerdict) {
  for (auto& run : runs_) run.status = RunStatus::finished, run.hardware = "NVIDIA A100";
  runs_[1].hardware.clear();
  const std::vector<RungJudgement> rungs = judge_rungs(measured_, {});
  EXPECT_EQ(rungs[1].over_baseline.verdict, Verdict::cannot_tell);
  EXPECT_EQ(rungs[1].over_baseline.worst(), Trust::doubtful);
  EXPECT_TRUE(std::ranges::any_of(rungs[1].flags, [](const Flag& each) { return each.id == FlagId::other_machine; }));
  EXPECT_TRUE(rungs[2].over_baseline.is(Verdict::faster));
  // What one ladder joins is of one machine, though a part of it doesn't name it.
  for (auto& run : runs_) run.ladder = 1;
  EXPECT_TRUE(judge_rungs(measured_, {})[1].over_baseline.is(Verdict::faster));
}

// The gain is the plainer step's, so its stage isn't credited with it.
TEST_F(Rungs, AStageThatFellBackIsNotCreditedWithAGain) {
  for (auto& run : runs_) run.status = RunStatus::finished;
  EXPECT_TRUE(judge_rungs(measured_, {})[1].over_baseline.is(Verdict::faster));
  runs_[1].recipe = R"({"compile":"max","fell_back":"compile-max fell back to compile: the loss is 5, there 4"})";
  const std::vector<RungJudgement> rungs = judge_rungs(measured_, {});
  EXPECT_FALSE(rungs[1].over_baseline.is(Verdict::faster));
  EXPECT_FALSE(rungs[2].over_previous.is(Verdict::faster));
  EXPECT_TRUE(rungs[2].over_baseline.is(Verdict::faster));
  EXPECT_EQ(rungs[1].trust, Trust::doubtful);
  const auto flag = std::find_if(rungs[1].flags.begin(), rungs[1].flags.end(),
                                 [](const Flag& each) { return each.id == FlagId::fell_back; });
  ASSERT_NE(flag, rungs[1].flags.end());
  EXPECT_EQ(flag->why, "compile-max fell back to compile: the loss is 5, there 4. Its figures are the plainer step's.");
}

// The scatter of disturbed steps isn't that of a quiet machine.
TEST_F(Rungs, NoNumberOfRunsSettlesADisturbedRung) {
  for (auto& run : runs_) run.status = RunStatus::finished;
  series_[1] = {};
  for (std::int64_t step = 1; step <= 60; ++step)
    series_[1].append({.step = step, .loss = 3, .dt_ms = 60 + static_cast<double>(step * 37 % 80), .tokens = 1000});
  summaries_[1] = summarise(series_[1], -1, 1000);
  ASSERT_GT(judge_rungs(measured_, {})[1].needed_runs(), 0);
  summaries_[1].watched_steps = summaries_[1].disturbed_steps = 54;
  const RungJudgement disturbed = judge_rungs(measured_, {})[1];
  EXPECT_EQ(disturbed.trust, Trust::doubtful);
  EXPECT_EQ(disturbed.needed_runs(), 0);
}

TEST_F(Rungs, AFlagOfALaterRepeatNamesTheRepeatAsPeopleCount) {
  runs_[1].rung = 0;
  runs_[1].repeat = 1;
  for (std::size_t i = 0; i < 2; ++i) runs_[i].status = RunStatus::finished;
  summaries_[1].nonfinite_steps = 1;
  const std::vector<RungJudgement> rungs = judge_rungs(std::span(measured_).first(2), {});
  ASSERT_EQ(rungs.size(), 1u);
  const auto flag = std::find_if(rungs[0].flags.begin(), rungs[0].flags.end(),
                                 [](const Flag& each) { return each.id == FlagId::nonfinite_loss; });
  ASSERT_NE(flag, rungs[0].flags.end());
  EXPECT_TRUE(flag->why.starts_with("Repeat 2: ")) << flag->why;  // its name ends in "#2"
}

TEST_F(Rungs, ACancelledRepeatIsNoRunBesideAFinishedOne) {
  for (int i = 0; i < 2; ++i) {
    runs_[i].rung = 0;
    runs_[i].repeat = i;
  }
  runs_[0].status = runs_[2].status = RunStatus::finished;
  const auto flagged_once = [](const RungJudgement& rung) {
    return std::any_of(rung.flags.begin(), rung.flags.end(),
                       [](const Flag& flag) { return flag.id == FlagId::not_repeated; });
  };
  for (const RunStatus status : {RunStatus::stopped, RunStatus::interrupted, RunStatus::failed, RunStatus::running}) {
    runs_[1].status = status;
    const std::vector<RungJudgement> rungs = judge_rungs(measured_, {});
    EXPECT_EQ(rungs[0].runs.size(), 2u);
    EXPECT_EQ(rungs[0].count.unfinished + rungs[0].count.to_come, 1) << to_string(status);
    EXPECT_EQ(rungs[0].count.to_come, status == RunStatus::running ? 1 : 0);
    EXPECT_EQ(rungs[0].count.counted(), 1);
    EXPECT_TRUE(flagged_once(rungs[0])) << to_string(status);
    EXPECT_NEAR(rungs[0].tokens_per_s, 10'000, 10) << "of the finished one alone";
  }
  runs_[1].status = RunStatus::finished;
  EXPECT_FALSE(flagged_once(judge_rungs(measured_, {})[0]));
  EXPECT_NEAR(judge_rungs(measured_, {})[0].tokens_per_s, 15'000, 15);
  // Without a finished one, what there is counts.
  runs_[0].status = runs_[1].status = RunStatus::stopped;
  EXPECT_EQ(judge_rungs(measured_, {})[0].count.counted(), 2);
  EXPECT_FALSE(flagged_once(judge_rungs(measured_, {})[0]));
}

TEST_F(Rungs, ARepeatThatNeverStartedIsNoBaseline) {
  for (int i = 0; i < 2; ++i) {
    runs_[i].rung = 0;
    runs_[i].repeat = i;
    runs_[i].status = RunStatus::stopped;
    runs_[i].environment = R"({"host":"node1"})";
  }
  runs_[0].device = "cpu";
  summaries_[0].watched_steps = summaries_[0].disturbed_steps = 50;  // so that the other one would stand for the rung
  runs_[1].device = "auto";
  series_[1] = {};
  summaries_[1] = summarise(series_[1], -1, 1000);
  for (const RunStatus status : {RunStatus::stopped, RunStatus::interrupted, RunStatus::failed, RunStatus::queued}) {
    runs_[1].status = status;
    const RungJudgement base = judge_rungs(measured_, {})[0];
    EXPECT_NEAR(base.tokens_per_s, 10'000, 10) << to_string(status);
    EXPECT_EQ(base.count.disturbed, 0);
    EXPECT_EQ(base.count.counted(), 1);
    EXPECT_EQ(base.count.to_come, status == RunStatus::queued ? 1 : 0);
    EXPECT_EQ(std::ranges::count(base.flags, FlagId::other_machine, &Flag::id), 0);
    const std::vector<RunWithSummary> runs{{&runs_[1], &summaries_[1]}, {&runs_[0], &summaries_[0]}};
    EXPECT_EQ(baseline_of(runs).id, runs_[0].id);
  }
}

TEST_F(Rungs, ACancelledRepeatThatDivergedIsNotForgotten) {
  for (int i = 0; i < 2; ++i) {
    runs_[i].rung = 1;
    runs_[i].repeat = i;
  }
  runs_[2].rung = 0;
  runs_[0].status = runs_[2].status = RunStatus::finished;
  runs_[1].status = RunStatus::stopped;
  series_[1].loss[30] = std::nan("");
  summaries_[1] = summarise(series_[1], -1, 1000);
  EXPECT_EQ(judge_rungs(measured_, {})[1].loss.verdict, LossVerdict::diverged);
}

// A ladder that was trained here: each rung has a stage, a recipe and a step time.
class Climbed : public testing::Test {
 protected:
  void add(const std::string& stage, const std::string& recipe, double dt_ms, int repeats = 3) {
    for (int repeat = 0; repeat < repeats; ++repeat) {
      stepladder::Run& run = runs_.emplace_back();
      run.id = std::ssize(runs_);
      run.rung = rungs_;
      run.repeat = repeat;
      run.stage = stage;
      run.recipe = recipe;
      run.source = source_;
      run.source_path = path_;
      run.stands_on = launched_on_;
      run.status = RunStatus::finished;
      run.sync = Sync::device;
      run.tokens_per_step = 1000;
      Series& series = series_.emplace_back();
      for (std::int64_t step = 1; step <= 60; ++step)
        series.append({.step = step,
                       .loss = 3 - 0.01 * static_cast<double>(step),
                       .dt_ms = dt_ms * (1 + 1e-4 * static_cast<double>(step % 3) + 2e-4 * repeat),
                       .tokens = 1000});
      summaries_.push_back(summarise(series, -1, 1000));
    }
    ++rungs_;
  }
  std::vector<MeasuredRun> measured() const {
    std::vector<MeasuredRun> all;
    auto series = series_.begin();
    auto summary = summaries_.begin();
    for (const stepladder::Run& run : runs_) all.push_back({&run, &*summary++, &*series++});
    return all;
  }
  std::vector<RungJudgement> judged(int baseline = -1) const { return judge_rungs(measured(), {}, baseline); }
  std::vector<int> stood_on() const {
    std::vector<int> rungs;
    for (const RungJudgement& rung : judged()) rungs.push_back(rung.stands_on);
    return rungs;
  }
  std::vector<std::string> answers(int baseline = -1) const {
    std::vector<std::string> words;
    for (const RungJudgement& rung : judged(baseline)) words.emplace_back(to_string(rung.answer()));
    return words;
  }
  // As if a verification of at most `most` runs a side had launched the rung's repeats.
  void verified(int rung, std::int64_t most) {
    for (stepladder::Run& run : runs_)
      if (run.rung == rung && run.repeat > 0) run.looks_up_to = most;
  }
  PairJudgement pair(int base, int rung) const { return judge_pair(measured(), base, rung, {}); }
  std::string source_ = "launched", path_;
  std::int64_t launched_on_ = -1;

 private:
  int rungs_ = 0;
  std::list<stepladder::Run> runs_;
  std::list<Series> series_;
  std::list<Summary> summaries_;
};

using Words = std::vector<std::string>;
using Numbers = std::vector<int>;

// By its recipe alone, a rung of one value that the one below sets too is a further step.
TEST_F(Climbed, AStandsOnTheRungThatItWasLaunchedOn) {
  add("baseline", R"({"compile": "off"})", 100);
  add("compile", R"({"compile": "on"})", 50);
  add("compile-max", R"({"compile": "max"})", 48);
  EXPECT_EQ(stood_on(), (Numbers{0, 0, 1}));
  launched_on_ = 0;
  add("alone", R"({"compile": "reduce"})", 49);
  EXPECT_EQ(stood_on(), (Numbers{0, 0, 1, 0}));
  launched_on_ = 3;
  add("on the one before", R"({"matmul": "tf32"})", 48);
  EXPECT_EQ(stood_on(), (Numbers{0, 0, 1, 0, 3}));
  launched_on_ = 77;  // that isn't there
  add("tf32", R"({"compile": "max", "matmul": "tf32"})", 40);
  EXPECT_EQ(stood_on().back(), 4) << "inferred";
}

TEST_F(Climbed, ARungThatBoughtNothingOverTheOneBelowIsNoise) {
  add("baseline", R"({"matmul": "fp32", "seed": 1})", 100);
  add("tf32", R"({"matmul": "tf32", "seed": 1})", 50);
  add("flash", R"({"matmul": "tf32", "attention": "flash", "seed": 1})", 50);
  add("compile", R"({"matmul": "tf32", "attention": "flash", "compile": "on", "seed": 1})", 60);
  EXPECT_EQ(stood_on(), (Numbers{0, 0, 1, 2}));
  EXPECT_EQ(answers(), (Words{"baseline", "real", "noise", "slower"}));
  EXPECT_TRUE(judged()[3].over_baseline.is(Verdict::faster)) << "which is another question";
  EXPECT_NEAR(judged()[3].own_step.factor, 50.0 / 60, 0.001);
  EXPECT_EQ(answers(1), (Words{"slower", "baseline", "noise", "slower"})) << "a chosen baseline";
}

TEST_F(Climbed, ALookIsPaidForByEveryLaterJudgement) {
  add("baseline", R"({"matmul": "fp32"})", 100);
  add("tf32", R"({"matmul": "tf32"})", 50);
  add("flash", R"({"matmul": "tf32", "attention": "flash"})", 40);
  const std::vector<RungJudgement> before = judged();
  const auto width = [](const Gain& gain) { return gain.ci95.high / gain.ci95.low; };
  verified(1, 6);
  EXPECT_EQ(width(judged()[1].over_baseline), width(before[1].over_baseline)) << "one side alone isn't a verification";
  verified(0, 6);
  EXPECT_GT(width(judged()[1].over_baseline), width(before[1].over_baseline));
  EXPECT_GT(judged()[1].over_baseline.p, before[1].over_baseline.p);
  EXPECT_EQ(width(judged()[2].own_step), width(before[2].own_step)) << "nobody looked at this one";
  EXPECT_EQ(answers(), (Words{"baseline", "real", "real"}));
}

TEST_F(Climbed, AnAddedRunIsALook) {
  add("baseline", R"({"matmul": "fp32"})", 100, 6);
  add("tf32", R"({"matmul": "tf32"})", 50, 6);
  const auto width = [&] { return std::log(judged()[1].own_step.ci95.high / judged()[1].own_step.ci95.low); };
  const double before = width();
  verified(1, added_after_a_look);
  // Student's t with ten degrees of freedom: 5 % x 6 / (2 + 3 + 4 + 5 + 6) are left for this look.
  EXPECT_NEAR(width() / before, 2.93 / 2.23, 0.05);
  EXPECT_EQ(answers(), (Words{"baseline", "real"}));
  verified(0, 6);
  EXPECT_NEAR(width() / before, 2.93 / 2.23, 0.05) << "a verification needs both sides";
}

TEST_F(Climbed, RunsAddedToOneSideAloneAreLooksToo) {
  add("baseline", R"({"matmul": "fp32"})", 100, 3);
  add("tf32", R"({"matmul": "tf32"})", 50, 9);
  const auto width = [&] { return std::log(judged()[1].own_step.ci95.high / judged()[1].own_step.ci95.low); };
  const double before = width();
  verified(1, added_after_a_look);
  EXPECT_GT(width() / before, 1.5) << "seven looks, however few runs the baseline has";
  EXPECT_EQ(answers(), (Words{"baseline", "real"}));
  verified(1, 0);
  verified(0, added_after_a_look);
  EXPECT_NEAR(width() / before, 1.1, 0.1) << "two";
}

TEST_F(Climbed, BetweenTwoLooksNothingIsClear) {
  add("baseline", R"({"matmul": "fp32"})", 100, 6);
  add("tf32", R"({"matmul": "tf32"})", 50, 6);
  EXPECT_EQ(answers(), (Words{"baseline", "real"}));
  verified(0, 50);
  verified(1, 50);  // looks after 5 and 7
  EXPECT_EQ(answers(), (Words{"baseline", "cannot-tell"}));
  verified(0, 6);
  verified(1, 6);
  EXPECT_EQ(answers(), (Words{"baseline", "real"})) << "after the last one allowed";
}

TEST_F(Climbed, SingleRunsOfAVerificationAreJudgedAsOthersAre) {
  add("baseline", R"({"matmul": "fp32"})", 100);
  add("tf32", R"({"matmul": "tf32"})", 50);
  const auto verdict = [&] {
    const std::vector<MeasuredRun> all = measured();
    const std::vector<Subject> subjects{{.runs = {all[1]}, .siblings = {all[0], all[2]}},
                                        {.runs = {all[4]}, .siblings = {all[3], all[5]}}};
    return judge(subjects, 0, {})[1].over_baseline;
  };
  const Gain before = verdict();
  verified(0, 6);
  verified(1, 6);
  EXPECT_EQ(verdict().verdict, before.verdict);
  EXPECT_EQ(verdict().ci95.low, before.ci95.low);
  EXPECT_EQ(before.verdict, Verdict::faster);
}

TEST_F(Climbed, APairIsJudgedAsItsLadderDoes) {
  add("baseline", R"({"matmul": "fp32"})", 100);
  add("tf32", R"({"matmul": "tf32"})", 50);
  add("flash", R"({"matmul": "tf32", "attention": "flash"})", 40);
  add("compile", R"({"matmul": "tf32", "attention": "flash", "compile": "on"})", 39.9);
  const std::vector<RungJudgement> all = judged();
  const auto expect_same = [](const Gain& a, const Gain& b) {
    EXPECT_EQ(a.factor, b.factor);
    EXPECT_EQ(a.verdict, b.verdict);
    EXPECT_EQ(a.ci95.low, b.ci95.low);
    EXPECT_EQ(a.compared, b.compared);
  };
  expect_same(pair(2, 3).gain, all[3].own_step);
  expect_same(pair(0, 3).gain, all[3].over_baseline);
  expect_same(pair(0, 1).gain, all[1].own_step);
  expect_same(pair(1, 3).gain, judged(1)[3].over_baseline);
  EXPECT_NEAR(pair(1, 0).gain.factor, 0.5, 0.001);
  EXPECT_EQ(pair(1, 0).rung.rung, 0);
}

TEST_F(Climbed, RungsOfASweepStandAlone) {
  add("baseline", R"({"lr": 0.001, "batch": 8})", 100);
  add("lr=0.003:batch=8", R"({"lr": 0.003, "batch": 8})", 50);
  add("lr=0.003:batch=16", R"({"lr": 0.003, "batch": 16})", 50);
  EXPECT_EQ(stood_on(), (Numbers{0, 0, 0}));
  EXPECT_EQ(answers(), (Words{"baseline", "real", "real"}));
}

TEST_F(Climbed, RungsThatWereTrainedAloneStandAlone) {
  add("baseline", R"({"matmul": "fp32", "compile": "off"})", 100);
  add("tf32", R"({"matmul": "tf32", "compile": "off"})", 50);
  add("compile", R"({"matmul": "fp32", "compile": "on"})", 50);
  EXPECT_EQ(stood_on(), (Numbers{0, 0, 0}));
  EXPECT_EQ(answers(), (Words{"baseline", "real", "real"}));
}

TEST_F(Climbed, ARungStandsOnlyOnWhatItKeeps) {
  add("baseline", R"({"autocast": "none", "compile": "off"})", 100);
  add("bf16", R"({"autocast": "bf16", "compile": "off"})", 90);
  add("compile", R"({"autocast": "none", "compile": "on"})", 80);
  add("compile-max", R"({"autocast": "none", "compile": "max"})", 40);
  add("bf16+compile", R"({"autocast": "bf16", "compile": "on"})", 70);
  add("bf16+compile-max", R"({"autocast": "bf16", "compile": "max"})", 30);
  EXPECT_EQ(stood_on(), (Numbers{0, 0, 0, 2, 2, 4}));
  EXPECT_EQ(answers(), (Words{"baseline", "real", "real", "real", "real", "real"}));
}

TEST_F(Climbed, NothingStandsOnACheck) {
  add("baseline", R"({"matmul": "fp32", "data": "all", "compile": "off"})", 100);
  add("tf32", R"({"matmul": "tf32", "data": "all", "compile": "off"})", 50);
  add("overfit", R"({"matmul": "fp32", "data": "one batch", "compile": "off"})", 300);
  add("compile", R"({"matmul": "tf32", "data": "all", "compile": "on"})", 50);
  EXPECT_EQ(stood_on(), (Numbers{0, 0, 0, 1}));
  EXPECT_EQ(answers(), (Words{"baseline", "real", "slower", "noise"}));
}

TEST_F(Climbed, BlocksOfOneFileStandOnEachOtherAndFilesDont) {
  source_ = "import";
  path_ = "a.txt";
  add("A", "", 100);
  add("B", "", 50);
  add("C", "", 50);
  EXPECT_EQ(stood_on(), (Numbers{0, 0, 1}));
  path_ = "b.txt";
  add("D", "", 50);
  EXPECT_EQ(stood_on(), (Numbers{0, 0, 0, 0}));
}

TEST_F(Climbed, ASingleRunIsNeverMoreThanFasterOnce) {
  add("baseline", "", 100, 1);
  add("tf32", "", 50, 1);
  add("debug", "", 80, 3);
  EXPECT_EQ(answers(), (Words{"baseline", "faster-one-run", "slower-one-run"})) << "one side has one run";
}

}  // namespace
}  // namespace stepladder
