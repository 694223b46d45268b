#include "storage/contention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "storage/analysis/judgement.h"
#include "storage/analysis/plausibility.h"
#include "storage/analysis/summary.h"

namespace stepladder {
namespace {

Contention on_cpu(double others, int cores = 2, int threads = 2) {
  return {.other_cores = others, .cores = cores, .needed_cores = threads};
}

TEST(Contention, ARunIsDisturbedIfItLacksMoreThanATenthOfItsThreads) {
  EXPECT_FALSE(is_disturbed(on_cpu(0)));
  EXPECT_FALSE(is_disturbed(on_cpu(0.15)));
  EXPECT_TRUE(is_disturbed(on_cpu(0.25)));
  EXPECT_DOUBLE_EQ(lacking_cores(on_cpu(1.3)), 1.3);
  // Sixteen cores, of which a run on four needs few.
  EXPECT_FALSE(is_disturbed(on_cpu(12, 16, 4)));
  EXPECT_TRUE(is_disturbed(on_cpu(13, 16, 4)));
  EXPECT_DOUBLE_EQ(lacking_cores(on_cpu(13, 16, 4)), 1);
  // More threads than cores are the run's own doing.
  EXPECT_FALSE(is_disturbed(on_cpu(0, 2, 8)));
}

TEST(Contention, AGpuIsDisturbedByOthersOnIt) {
  EXPECT_FALSE(is_disturbed(Contention{.other_gpu_load = 0.05}));
  EXPECT_TRUE(is_disturbed(Contention{.other_gpu_load = 0.4}));
  EXPECT_TRUE(is_disturbed(Contention{.other_cores = 1, .other_gpu_load = 0.4, .cores = 16, .needed_cores = 1}));
}

TEST(Contention, WhatIsNotKnownDisturbsNobody) {
  EXPECT_FALSE(is_known({}));
  EXPECT_FALSE(is_disturbed(Contention{}));
  EXPECT_FALSE(is_disturbed(Contention{.other_cores = 2, .cores = 0, .needed_cores = 2})) << "a container's limit";
  EXPECT_FALSE(is_disturbed(Contention{.other_cores = 2, .cores = 2, .needed_cores = 0}));
  EXPECT_TRUE(is_missing(lacking_cores({.cores = 2, .needed_cores = 2})));
  EXPECT_EQ(contention_text({}), "");
}

TEST(Contention, SaysItsArithmetic) {
  EXPECT_EQ(contention_text(on_cpu(1.31)), "others used 1.3 of 2 cores, which left 0.7 for its 2 threads");
  EXPECT_EQ(contention_text(on_cpu(1, 1, 1)), "others used 1.0 of 1 core, which left 0.0 for its 1 thread");
  EXPECT_EQ(contention_text({.other_cores = 1.31, .program_cores = 0.4, .cores = 2, .needed_cores = 2}),
            "others used 1.3 of 2 cores (0.4 by this window or terminal), which left 0.7 for its 2 threads");
  EXPECT_EQ(contention_text({.other_gpu_load = 0.45}), "others used 45 % of its GPU");
}

// Samples at these times, with these cores used by others.
class Samples {
 public:
  void add(double at, double others) { samples_.push_back({.at = at, .contention = on_cpu(others)}); }
  const std::vector<SystemMetrics>& all() const { return samples_; }
  ContentionOfSteps of_steps() {
    return ContentionOfSteps([this](SystemMetrics& sample) {
      if (next_ == samples_.size()) return false;
      sample = samples_[next_++];
      return true;
    });
  }

 private:
  std::vector<SystemMetrics> samples_;
  std::size_t next_ = 0;
};

TEST(ContentionOfSteps, IsTheMeanOverTheStepsTime) {
  Samples samples;
  for (const auto& [at, others] : {std::pair{100.5, 0.0}, {101.0, 1.0}, {101.5, 2.0}}) samples.add(at, others);
  ContentionOfSteps steps = samples.of_steps();
  EXPECT_DOUBLE_EQ(steps.during(100.4, 100).other_cores, 0);
  EXPECT_NEAR(steps.during(100.6, 200).other_cores, 0.5, 1e-9);  // half of it in each interval
  EXPECT_DOUBLE_EQ(steps.during(101.0, 200).other_cores, 1);
  EXPECT_NEAR(steps.during(101.5, 1000).other_cores, 1.5, 1e-9);
  EXPECT_FALSE(is_known(steps.during(102.5, 100))) << "after the last sample";
  EXPECT_FALSE(is_known(steps.during(missing, 100)));
  EXPECT_FALSE(is_known(steps.during(103, missing)));
}

TEST(ContentionOfSteps, AGapBelongsToNoSample) {
  Samples samples;
  samples.add(100.5, 0);
  samples.add(5000.5, 2);  // the run was resumed
  ContentionOfSteps steps = samples.of_steps();
  EXPECT_FALSE(is_known(steps.during(2000, 100)));
  EXPECT_DOUBLE_EQ(steps.during(5000.3, 100).other_cores, 2);
}

// Steps of 100 ms from second 1000 on, sampled every half second; others use 1.3 cores while `busy` says so.
struct MeasuredSteps {
  template <class Busy>
  MeasuredSteps(int steps, Busy&& busy) {
    for (int i = 1; i <= steps; ++i) {
      const double at = 1000 + 0.1 * i;
      series.append({.step = i, .loss = 2, .dt_ms = 100, .tokens = 10, .at = at});
      if (i % 5 == 0) samples.add(at, busy(i) ? 1.3 : 0.02);
    }
    summary = summarise(series, -1, 10, samples.all());
  }
  Series series;
  Samples samples;
  Summary summary;
};

std::string busy_flag_of(const Summary& summary) {
  const Run run{.status = RunStatus::finished};
  for (const Flag& flag : flags_of(run, summary, 2, {}))
    if (flag.id == FlagId::busy_machine) return flag.why;
  return "";
}

TEST(BusyMachine, IsFlaggedWithItsArithmetic) {
  const MeasuredSteps measured(110, [](int step) { return step <= 74; });
  EXPECT_EQ(measured.summary.warmup_steps, 10);
  EXPECT_EQ(measured.summary.watched_steps, 100);
  EXPECT_EQ(measured.summary.disturbed_steps, 60);
  EXPECT_EQ(busy_flag_of(measured.summary),
            "Others used 1.3 of 2 cores during 60 % of the steps that count (60 of 100), which left 0.7 for its 2 "
            "threads: its median is a disturbed step, so it cannot be judged. Measure it again on a quiet machine.");
  EXPECT_EQ(kind_of(FlagId::busy_machine).name, "busy-machine");
  EXPECT_EQ(kind_of(FlagId::busy_machine).trust, Trust::doubtful);
}

TEST(BusyMachine, AFewDisturbedStepsAreNoFlagAndAThirdIsAMilderOne) {
  const MeasuredSteps few(110, [](int step) { return step <= 30; });
  EXPECT_EQ(few.summary.disturbed_steps, 20);
  EXPECT_EQ(busy_flag_of(few.summary), "");
  const MeasuredSteps third(110, [](int step) { return step <= 45; });
  EXPECT_NE(busy_flag_of(third.summary).find("its times may be too long"), std::string::npos);
  const MeasuredSteps quiet(110, [](int) { return false; });
  EXPECT_EQ(quiet.summary.watched_steps, 100);
  EXPECT_EQ(busy_flag_of(quiet.summary), "");
  EXPECT_TRUE(is_missing(quiet.summary.disturbance.other_cores));
}

TEST(BusyMachine, DisturbanceDuringWarmUpDoesNotCount) {
  const MeasuredSteps measured(110, [](int step) { return step <= 10; });
  EXPECT_EQ(measured.summary.disturbed_steps, 0);
}

TEST(BusyMachine, ALongRunIsCountedAlike) {
  const MeasuredSteps measured(400, [](int step) { return step > 200; });
  SummaryBuilder bounded(-1, 10, 100);  // exact up to step 100
  Samples samples = measured.samples;
  ContentionOfSteps contention = samples.of_steps();
  for (std::size_t i = 0; i < measured.series.size(); ++i)
    bounded.add({.step = measured.series.step[i], .dt_ms = 100, .tokens = 10, .at = measured.series.at[i]},
                contention.during(measured.series.at[i], 100));
  const Summary summary = bounded.finish();
  EXPECT_EQ(summary.disturbed_steps, measured.summary.disturbed_steps);
  EXPECT_EQ(summary.watched_steps, 400 - summary.warmup_steps);
  EXPECT_NEAR(summary.disturbance.other_cores, 1.3, 1e-5);
}

// A rung at 100 ms and one at 50 ms, each with two repeats.
class DisturbedRungs : public testing::Test {
 protected:
  DisturbedRungs() {
    for (int i = 0; i < 4; ++i) {
      runs_[i] = {.id = i + 1, .rung = i / 2, .repeat = i % 2, .status = RunStatus::finished, .tokens_per_step = 1000};
      for (std::int64_t step = 1; step <= 60; ++step)
        series_[i].append({.step = step,
                           .loss = 2,
                           .dt_ms = 100.0 / (1 + i / 2) + 0.01 * static_cast<double>(step % 3),
                           .tokens = 1000});
      summaries_[i] = summarise(series_[i], -1, 1000);
      measured_.push_back({&runs_[i], &summaries_[i], &series_[i]});
    }
  }
  void disturb(int i) {
    summaries_[i].watched_steps = 54;
    summaries_[i].disturbed_steps = 40;
    summaries_[i].disturbance = on_cpu(1.3);
    summaries_[i].dt_ms_median *= 4;
    summaries_[i].tokens_per_s /= 4;
  }
  static bool is_flagged(const RungJudgement& rung) {
    return std::any_of(rung.flags.begin(), rung.flags.end(),
                       [](const Flag& flag) { return flag.id == FlagId::busy_machine; });
  }
  stepladder::Run runs_[4];
  Series series_[4];
  Summary summaries_[4];
  std::vector<MeasuredRun> measured_;
};

TEST_F(DisturbedRungs, AVerdictOnDisturbedStepsIsNeverFaster) {
  EXPECT_TRUE(judge_rungs(measured_, {})[1].over_baseline.is(Verdict::faster));
  disturb(0);
  disturb(1);
  const std::vector<RungJudgement> rungs = judge_rungs(measured_, {});
  EXPECT_TRUE(is_flagged(rungs[0]));
  EXPECT_EQ(rungs[0].count.counted(), 2);
  EXPECT_TRUE(rungs[0].count.all_busy);
  EXPECT_EQ(rungs[1].over_baseline.base_trust, Trust::doubtful);
  EXPECT_EQ(rungs[1].over_baseline.worst(), Trust::doubtful);
  EXPECT_GT(rungs[1].over_baseline.factor, 7);
  EXPECT_EQ(rungs[1].over_baseline.verdict, Verdict::cannot_tell);
  EXPECT_EQ(rungs[1].over_previous.verdict, Verdict::cannot_tell);
}

TEST_F(DisturbedRungs, ARepeatOnAQuietMachineStandsInForADisturbedOne) {
  disturb(0);
  const std::vector<RungJudgement> rungs = judge_rungs(measured_, {});
  EXPECT_FALSE(is_flagged(rungs[0]));
  EXPECT_EQ(rungs[0].trust, Trust::trusted);
  EXPECT_EQ(rungs[0].runs.size(), 2u);
  EXPECT_EQ(rungs[0].count.disturbed, 1);
  EXPECT_EQ(rungs[0].count.counted(), 1);
  EXPECT_FALSE(rungs[0].count.all_busy);
  EXPECT_NEAR(rungs[0].tokens_per_s, 10'000, 10);
  EXPECT_NEAR(rungs[1].over_baseline.factor, 2, 0.01);
}

}  // namespace
}  // namespace stepladder
