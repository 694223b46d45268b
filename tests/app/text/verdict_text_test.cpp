// The words of a ladder's answer: which rung is real by its own step, and why the others aren't.
#include "app/text/verdict_text.h"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

// Rung `number` on the one before it.
RungJudgement rung(int number, double own, double over_baseline, Verdict verdict, std::size_t runs = 3) {
  RungJudgement judged{.rung = number, .tokens_per_s = 1000 * over_baseline};
  judged.is_baseline = number == 0;
  judged.stands_on = std::max(0, number - 1);
  judged.own_step.factor = own;
  judged.own_step.verdict = verdict;
  judged.own_step.runs = runs;
  judged.over_baseline.factor = over_baseline;
  judged.over_baseline.verdict = Verdict::faster;
  judged.over_baseline.runs = runs;
  return judged;
}

TEST(Interval, HasTheDigitsThatItsWidthSupports) {
  EXPECT_EQ(ci95_text({9.0541, 12.2603}), "9.1 - 12.3");
  EXPECT_EQ(ci95_text({1.2404, 1.3011}), "1.24 - 1.30");
  EXPECT_EQ(ci95_text({2.38512, 2.38733}), "2.3851 - 2.3873");
  EXPECT_EQ(ci95_text({0.0931, 85.869}), "no interval") << "it says nothing";
  EXPECT_EQ(ci95_text({2, 629}), "no interval");
  EXPECT_EQ(ci95_text({0.2151, 4.495}), "0.2 - 4");
  EXPECT_EQ(ci95_text({-0.31, 0.42}), "-0.3 - 0.4");
  EXPECT_EQ(ci95_text({1.04, 1.5}), "1.04 - 1.5") << "a verdict excludes 1, and so does its text";
  EXPECT_EQ(ci95_text({0.6, 0.96}), "0.6 - 0.96");
  EXPECT_EQ(ci95_text({2, 2}), "2.000 - 2.000");
  EXPECT_EQ(ci95_text({}), "-");
}

TEST(Verdict, InconclusiveNeedsNoSecondWord) {
  Gain doubtful;
  doubtful.factor = 1.5;
  doubtful.verdict = Verdict::cannot_tell;
  doubtful.trust = Trust::doubtful;
  EXPECT_EQ(verdict_text(doubtful), "inconclusive");
}

TEST(Count, SaysOnceHowManyRunsCountAndWhyNotTheOthers) {
  EXPECT_EQ(count_text({.all = 1}), "1 run");
  EXPECT_EQ(count_text({.all = 5}), "5 runs");
  EXPECT_EQ(count_text({.all = 5, .disturbed = 3}), "2 of 5 runs count, 3 were disturbed");
  EXPECT_EQ(count_text({.all = 4, .unfinished = 1, .copies = 1, .disturbed = 1}),
            "1 of 4 runs counts, 1 was disturbed, 1 didn't finish, 1 is a copy");
  EXPECT_EQ(count_text({.all = 3, .to_come = 2}), "1 run") << "those to come are said elsewhere";
  EXPECT_EQ(count_text({.all = 3, .all_busy = true}), "3 runs, all disturbed");
}

TEST(Open, NamesTheReasonAndWhatWouldSettleIt) {
  RungJudgement base = rung(0, missing, 1, Verdict::cannot_tell);
  RungJudgement open = rung(1, 9.3, 9.3, Verdict::cannot_tell);
  open.own_step.ci95 = {5, 18};
  EXPECT_EQ(why_open_text(rung(1, 2, 2, Verdict::faster), &base), "") << "it is clear";
  base.flags.push_back({FlagId::busy_machine, "Others used 2 of 2 cores."});
  EXPECT_EQ(why_open_text(open, &base),
            "Other programs disturbed the baseline. Runs on a quiet machine would settle it.");
  open.flags.push_back({FlagId::busy_machine, "Others used 2 of 2 cores."});
  EXPECT_EQ(why_open_text(open, &base),
            "Other programs disturbed this rung and the baseline. Runs on a quiet machine would settle it.");
  open.flags.clear();
  base.flags.clear();
  open.own_step.needed_runs = 4;
  base.run_seconds = open.run_seconds = 15;
  EXPECT_EQ(why_open_text(open, &base),
            "Runs of one rung differ by about as much. About 4 more runs of each, 2 min, would settle a difference of "
            "this size.");
  open.own_step.needed_runs = 0;
  open.own_step.compared = 12;
  open.steps_per_s = base.steps_per_s = 10;
  EXPECT_TRUE(why_open_text(open, &base).starts_with("Clear alone, but not among the 12 factors of this ladder"));
  base.flags.push_back({FlagId::no_sync, "No synchronisation."});
  EXPECT_EQ(why_open_text(open, &base).substr(0, 14), "The baseline: ");
}

TEST(Open, ProposesNoHundredsOfRuns) {
  RungJudgement base = rung(0, missing, 1, Verdict::cannot_tell), open = rung(1, 1.002, 1.002, Verdict::cannot_tell);
  open.own_step.ci95 = open.over_baseline.ci95 = {0.98, 1.015};
  open.own_step.needed_runs = open.over_baseline.needed_runs = 344;
  EXPECT_EQ(why_open_text(open, &base),
            "Runs of one rung differ by about as much. The difference, if there is any, is below 2 %; more than 50 "
            "further runs of each would be needed to settle it.");
  EXPECT_EQ(needed_text(open).find("344"), std::string::npos);
  EXPECT_EQ(needed_text(344, missing, 0.01), "More than 50 further runs of each would be needed to settle it.");
  open.over_baseline.needed_runs = 0;
  open.loss.needed_runs = 344;
  EXPECT_EQ(needed_text(open), "More than 50 further runs of each would be needed to settle the loss.");
}

TEST(Open, ARungWithoutEffectSaysWhatShowsIt) {
  RungJudgement base = rung(0, missing, 1, Verdict::cannot_tell), flash = rung(1, 1.002, 1.002, Verdict::cannot_tell);
  flash.own_step.ci95 = {0.98, 1.015};
  flash.own_step.needed_runs = 344;
  flash.does_the_same = true;
  EXPECT_EQ(answer_word(flash.answer()), "no effect");
  EXPECT_EQ(why_open_text(flash, &base),
            "Its losses are those of the baseline to the last bit, and a step runs the same operators as often: the "
            "change has no effect here. A difference in time, if there is any, is below 2 %.");
  EXPECT_EQ(answer_text(std::vector<AnsweredRung>{{"Baseline", &base}, {"Flash", &flash}}),
            "Real: none. No effect: Flash.");
  flash.own_step.ci95 = {1.001, 1.015};
  EXPECT_EQ(answer_word(flash.answer()), "can't tell") << "its time may differ";
}

TEST(Answer, SaysWhatAGainMayHaveCost) {
  const RungJudgement base = rung(0, missing, 1, Verdict::cannot_tell);
  RungJudgement tf32 = rung(1, 2, 2, Verdict::faster);
  const auto answer = [&] { return answer_text(std::vector<AnsweredRung>{{"Baseline", &base}, {"TF32", &tf32}}); };
  EXPECT_TRUE(answer().starts_with("Real: TF32 2.00 x.")) << "no loss is printed";
  tf32.loss.max_gap = 0.1;
  EXPECT_TRUE(answer().starts_with("Real: TF32 2.00 x (loss not comparable)."));
  tf32.loss.verdict = LossVerdict::inconclusive;
  EXPECT_TRUE(answer().starts_with("Real: TF32 2.00 x."));
  tf32.loss.doubt = "its training loss ends early";
  EXPECT_TRUE(answer().starts_with("Real: TF32 2.00 x (loss unproven)."));
}

TEST(Answer, NamesEachRungByItsOwnStep) {
  const RungJudgement base = rung(0, missing, 1, Verdict::cannot_tell);
  const RungJudgement tf32 = rung(1, 2, 2, Verdict::faster), flash = rung(2, 1, 2, Verdict::same);
  const RungJudgement fused = rung(3, 0.9, 1.8, Verdict::slower);
  const std::vector<AnsweredRung> rungs{{"Baseline", &base}, {"TF32", &tf32}, {"Flash", &flash}, {"Fused", &fused}};
  EXPECT_EQ(answer_text(rungs),
            "Real: TF32 2.00 x. Slower: Fused 0.90 x. No gain: Flash. All together 1.80 x baseline.");
  EXPECT_EQ(answer_text(std::span(rungs).first(1)), "");
  EXPECT_TRUE(answer_text(rungs, 6).ends_with(" 6 further runs are in the bin."));
}

TEST(Fit, SaysWhatTheScaledTimesWere) {
  const StepProfile profile{
      .steps = 3,
      .operators = {{.part = "backward", .name = "aten::mm", .calls = 1, .self_ms = 22.5},
                    {.part = "backward", .name = "c10d::allreduce_", .calls = 1, .self_ms = 3.7}}};
  const FittedProfile fitted = fit_to_step(profile, {}, 35.2);
  EXPECT_EQ(fit_text(fitted),
            "Scaled to the median step: 3 profiled steps took 26.2 ms each, the median step 35.2 ms.");
  EXPECT_EQ(fit_text(fit_to_step(profile, {}, 26.3)),
            "Scaled to the median step: 3 profiled steps took 26.2 ms each, the median step 26.3 ms.")
      << "however little";
}

TEST(Answer, ARungBehindOneWithoutStepsIsNotSaidToHaveFailed) {
  const RungJudgement base = rung(0, missing, 1, Verdict::cannot_tell);
  const RungJudgement silent{.rung = 1, .why_untimed = "no steps"};
  const RungJudgement ddp = rung(2, 2, 2, Verdict::cannot_tell);
  EXPECT_EQ(answer_text(std::vector<AnsweredRung>{{"Baseline", &base}, {"GPT-3", &silent}, {"DDP", &ddp}}),
            "Real: none. Not proven: GPT-3 (no steps); DDP (can't be compared with rung 1: no steps). All together "
            "2.00 x baseline.");
}

TEST(Answer, WhatIsUnderWayIsNotUnproven) {
  const RungJudgement base = rung(0, missing, 1, Verdict::cannot_tell), tf32 = rung(1, 2, 2, Verdict::same);
  RungJudgement running{.rung = 2};
  running.is_under_way = true;
  const std::vector<AnsweredRung> rungs{{"Baseline", &base}, {"TF32", &tf32}, {"Fused", &running}};
  EXPECT_EQ(answer_text(rungs), "Real: none yet. No gain: TF32. Under way: Fused.");
  RungJudgement untimed{.rung = 1, .why_untimed = "failed before a step"};
  const std::vector<AnsweredRung> failed{{"Baseline", &base}, {"TF32", &untimed}};
  EXPECT_EQ(answer_text(failed), "Real: none. Not proven: TF32 (failed before a step).");
}

TEST(Answer, MoreThanPeopleReadAreCounted) {
  const RungJudgement base = rung(0, missing, 1, Verdict::cannot_tell), noise = rung(1, 1, 1, Verdict::same);
  std::vector<AnsweredRung> rungs{{"Baseline", &base}};
  for (int i = 0; i < 4; ++i) rungs.push_back({"lr " + std::to_string(i), &noise});
  EXPECT_EQ(answer_text(rungs), "Real: none. No gain: lr 0, lr 1, lr 2, lr 3.");
  for (int i = 4; i < 60; ++i) rungs.push_back({"lr " + std::to_string(i), &noise});
  EXPECT_EQ(answer_text(rungs), "Real: none. No gain: 60 of 60.");
}

TEST(Answer, OneRunIsNotReal) {
  const RungJudgement base = rung(0, missing, 1, Verdict::cannot_tell, 1), tf32 = rung(1, 2, 2, Verdict::faster, 1);
  const std::vector<AnsweredRung> rungs{{"Baseline", &base}, {"TF32", &tf32}};
  EXPECT_EQ(answer_text(rungs), "Faster, one run: TF32 2.00 x.");
  EXPECT_EQ(answer_word(tf32.answer()), "faster, one run");
}

TEST(Doubt, NamesTheFlagThatDecides) {
  EXPECT_EQ(doubt_text({.flags = {{FlagId::not_repeated, ""}}}), "");
  EXPECT_EQ(doubt_text({.flags = {{FlagId::busy_machine, ""}}, .trust = Trust::doubtful}), "Doubtful: busy machine");
  EXPECT_EQ(doubt_text({.flags = {{FlagId::impossible_throughput, ""}, {FlagId::busy_machine, ""}},
                        .trust = Trust::impossible}),
            "Impossible: throughput above the hardware's peak");
}

TEST(Needed, ClaimsNoSmallerDifferenceThanTheOneSeen) {
  RungJudgement judged = rung(1, 0.69, 0.69, Verdict::cannot_tell, 1);
  judged.over_baseline.needed_runs = 19;
  judged.needed_run_seconds = 20;
  EXPECT_EQ(needed_text(judged), "About 19 more runs of each, 6 min, would settle a difference of this size.");
  judged.loss.needed_runs = 30;
  EXPECT_EQ(needed_text(judged),
            "About 19 more runs of each, 6 min, would settle a difference of this size. About 30 more runs of each, 10 "
            "min, would settle the loss.");
  judged.over_baseline.needed_runs = 0;
  EXPECT_EQ(needed_text(judged), "About 30 more runs of each, 10 min, would settle the loss.");
}

TEST(Answer, SaysWhatIsWrongWithTheRungBelow) {
  const RungJudgement base = rung(0, missing, 1, Verdict::cannot_tell);
  RungJudgement below = rung(1, 12, 12, Verdict::faster), above = rung(2, 1.2, 14, Verdict::faster);
  below.trust = Trust::impossible;
  above.own_step.base_trust = Trust::impossible;
  const std::vector<AnsweredRung> rungs{{"Baseline", &base}, {"Tied", &below}, {"TF32", &above}};
  EXPECT_EQ(answer_text(rungs),
            "Real: none. Not proven: TF32 (rung 1 is impossible). Impossible: 1 of 3. All together 14.0 x baseline.");
}

TEST(Answer, ARungWithoutANameHasItsNumber) {
  const RungJudgement base = rung(0, missing, 1, Verdict::cannot_tell);
  const RungJudgement unmeasured{.rung = 1};
  const std::vector<AnsweredRung> rungs{{"", &base}, {"", &unmeasured}};
  EXPECT_EQ(answer_text(rungs), "Real: none. Not proven: rung 1 (not measured).");
}

}  // namespace
}  // namespace stepladder
