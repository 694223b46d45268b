#include "storage/analysis/run_place.h"

#include <gtest/gtest.h>

#include "storage/analysis/judgement.h"

namespace stepladder {
namespace {

stepladder::Run at(const std::string& environment, const std::string& hardware = "") {
  return {.hardware = hardware, .environment = environment};
}

TEST(RunPlace, IsKnownAsFarAsTheRunSaysSo) {
  EXPECT_EQ(place_of(at(R"({"host":"node1"})", "A100")), (RunPlace{{"node1"}, "A100"}));
  EXPECT_EQ(place_of(at(R"({"host":"node1","hosts":["node1","node2"]})")), (RunPlace{{"node1", "node2"}, ""}));
  for (const char* const bad : {"", "{", "[]", R"({"host":7})", R"({"hosts":{}})", R"({"hosts":[1]})"})
    EXPECT_EQ(place_of(at(bad)), RunPlace{}) << bad;
  EXPECT_EQ(place_of({.device = "auto"}), RunPlace{}) << "a run that never started";
  EXPECT_EQ(place_text({{"node1", "node2"}, "A100"}), "on node1, then on node2 (A100)");
  EXPECT_EQ(place_text({{}, "A100"}), "on A100");
}

TEST(RunPlace, DiffersOnlyInWhatBothKnow) {
  const RunPlace base{{"node1"}, "A100"};
  const auto why = [&](const RunPlace& run) { return why_no_factor(std::span(&base, 1), run); };
  EXPECT_EQ(why({{"node1"}, "A100"}), "");
  EXPECT_EQ(why({{}, "A100"}), "");
  EXPECT_EQ(why({{"node1"}, ""}), "");
  EXPECT_EQ(why({{"node2"}, "A100"}),
            "It was measured on node2 (A100) and the baseline on node1 (A100): a factor between two machines says "
            "nothing about the change.");
  EXPECT_NE(why({{"node1"}, "H100"}), "");
  EXPECT_NE(why({{"node1", "node2"}, "A100"}), "");
  EXPECT_EQ(why_no_factor({}, {{"node2"}, ""}), "");
}

// Two rungs of a ladder, the second twice as fast and on another host.
class TwoMachines : public testing::Test {
 protected:
  TwoMachines() {
    for (int rung = 0; rung < 2; ++rung) {
      runs_[rung] = {.id = rung + 1,
                     .ladder = 1,
                     .rung = rung,
                     .status = RunStatus::finished,
                     .environment = rung == 0 ? R"({"host":"node1"})" : R"({"host":"node2"})"};
      for (std::int64_t step = 1; step <= 60; ++step)
        series_[rung].append({.step = step, .loss = 3, .dt_ms = 100.0 / (1 + rung), .tokens = 1000});
      summaries_[rung] = summarise(series_[rung], -1, 1000);
      measured_.push_back({&runs_[rung], &summaries_[rung], &series_[rung]});
    }
  }
  static bool is_flagged(const std::vector<Flag>& flags) {
    return std::any_of(flags.begin(), flags.end(), [](const Flag& flag) { return flag.id == FlagId::other_machine; });
  }
  stepladder::Run runs_[2];
  Series series_[2];
  Summary summaries_[2];
  std::vector<MeasuredRun> measured_;
};

TEST_F(TwoMachines, GiveNoFactorAndAFlagInTheJudgementAndOfTheRun) {
  const std::vector<RungJudgement> rungs = judge_rungs(measured_, {});
  EXPECT_TRUE(is_missing(rungs[1].over_baseline.factor));
  EXPECT_FALSE(rungs[1].over_baseline.ci95.known());
  EXPECT_EQ(rungs[1].over_baseline.worst(), Trust::doubtful);
  EXPECT_EQ(rungs[1].over_baseline.verdict, Verdict::cannot_tell);
  EXPECT_EQ(rungs[1].over_previous.verdict, Verdict::cannot_tell);
  EXPECT_FALSE(rungs[1].over_baseline.is(Verdict::faster));
  EXPECT_TRUE(is_flagged(rungs[1].flags));
  EXPECT_FALSE(is_flagged(rungs[0].flags));
  EXPECT_TRUE(rungs[1].is_trusted()) << "its own throughput is as it was measured";
  PlausibilityContext context;
  for (const stepladder::Run& run : runs_) context.repeats.add(run);
  EXPECT_TRUE(is_flagged(plausibility_of(runs_[1], summaries_[1], context).flags));
  EXPECT_FALSE(is_flagged(plausibility_of(runs_[0], summaries_[0], context).flags));
}

TEST_F(TwoMachines, OnOneHostThereIsNoFlag) {
  runs_[1].environment = runs_[0].environment;
  const std::vector<RungJudgement> rungs = judge_rungs(measured_, {});
  EXPECT_EQ(rungs[1].over_baseline.verdict, Verdict::faster);
  EXPECT_FALSE(is_flagged(rungs[1].flags));
}

}  // namespace
}  // namespace stepladder
