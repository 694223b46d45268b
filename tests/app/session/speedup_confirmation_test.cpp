// The repeats behind "Verify gain", with a real session and a trainer whose step times are known.
#include "app/session/speedup_confirmation.h"

#include <gtest/gtest.h>

#include <functional>
#include <mutex>

#include "app/session/session.h"
#include "engine/trainer_library.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

using State = SpeedupConfirmation::State;

// How the next trainings behave; the trainer is a plain function, so this is shared. Reset by every test.
struct Behaviour {
  double rung_factor = 1;     // step time of a rung as a multiple of the base's
  double between_runs = 0;    // relative spread between runs of a rung
  int fails_after_runs = -1;  // how many runs finish before one fails; -1: no failure
  int impossible_from = -1;   // from this run on (0: the first) the throughput is over the peak; -1: none is
  int quiet_from = 0;         // other programs disturb the runs before this one
  Sync sync = Sync::device;

  int runs = 0;
};
std::mutex mutex;
Behaviour behaviour;

void train_as_asked(const TrainingJob& job, RunControl&, const std::function<void(const RunEvent&)>& emit) {
  Behaviour how;
  {
    const std::lock_guard lock(mutex);
    how = behaviour;
    ++behaviour.runs;
  }
  const bool is_impossible = how.impossible_from >= 0 && how.runs >= how.impossible_from;
  emit(RunStarted{.run = job.run,
                  .at = 1000,
                  .tokens_per_step = 768,
                  .params = is_impossible ? 1'000'000'000'000'000 : 10,
                  .device = how.sync == Sync::none ? "cuda" : "cpu",  // a CPU needs no synchronisation
                  .hardware = "NVIDIA A100-SXM4-40GB",
                  .precision = "fp32",
                  .sync = how.sync});
  const bool fails = how.fails_after_runs >= 0 && how.runs >= how.fails_after_runs;
  const bool is_rung = job.recipe.optimizer == Optimizer::fused_adamw;
  const double spread = how.between_runs * (how.runs / 2 % 2 == 0 ? -1 : 1);
  for (std::int64_t step = 1; step <= job.recipe.steps; ++step) {
    const double noise = 1 + 0.001 * static_cast<double>(step * 7919 % 11 - 5);
    emit(StepRecord{.run = job.run,
                    .step = step,
                    .loss = 4.0 / static_cast<double>(step),
                    .dt_ms = 10 * (is_rung ? how.rung_factor : 1) * (1 + spread) * noise,
                    .tokens = 768,
                    .at = 1000});
  }
  if (how.runs < how.quiet_from)
    emit(SystemMetrics{.run = job.run, .at = 1000, .contention = {.other_cores = 1.9, .cores = 2, .needed_cores = 2}});
  emit(RunEnded{.run = job.run,
                .at = 2000,
                .status = fails ? RunStatus::failed : RunStatus::finished,
                .reason = fails ? "on purpose" : ""});
}

const TrainerLibrary scripted = {.probe = [] { return DeviceReport{}; }, .train = train_as_asked};

class SpeedupConfirmationTest : public testing::Test {
 protected:
  void measure(Behaviour how) {
    behaviour = how;
    LadderRequest asked;
    asked.base.steps = 100;
    asked.base.device = "cpu";
    asked.rungs = parse_rungs("baseline,fused-adamw");
    const LaunchedLadder launched = session_.launch_ladder(asked, DeviceReport{});
    ladder_ = launched.ladder;
    base_ = launched.runs[0];
    rung_ = launched.runs[1];
    wait_for_runs(2);
  }
  void wait_for_runs(int runs) {
    for (int ended = 0; ended < runs;) {
      for (const RunEvent& event : session_.wait_and_drain(std::chrono::milliseconds(50)))
        ended += std::holds_alternative<RunEnded>(event) ? 1 : 0;
    }
    session_.flush();
  }
  const SpeedupAnswer& answer_to(SpeedupQuestion question) {
    question.quiet_patience.reset();  // the machine of a test is seldom quiet
    session_.confirm(question);
    while (session_.confirmation()->is_open()) session_.wait_and_drain(std::chrono::milliseconds(5));
    session_.flush();
    return session_.confirmation()->answer();
  }
  State state() { return session_.confirmation()->state(); }
  std::size_t runs() { return session_.store().runs().size(); }

  TemporaryFolder folder_;
  Session session_{folder_ / "runs.db", {}, &scripted};
  LadderId ladder_ = 0;
  RunId base_ = 0;
  RunId rung_ = 0;
};

TEST_F(SpeedupConfirmationTest, ACleanGainIsClearAfterOneRound) {
  measure({.rung_factor = 0.5});
  const SpeedupAnswer& answer = answer_to({rung_, base_});
  EXPECT_EQ(state(), State::answered);
  EXPECT_EQ(answer.speedup.verdict, Verdict::faster);
  EXPECT_NEAR(answer.speedup.factor, 2, 0.05);
  EXPECT_EQ(answer.speedup.worst(), Trust::trusted);
  EXPECT_EQ(answer.repeats, 2);
  EXPECT_EQ(answer.reason, "The verdict is clear after 2 runs each.");
  EXPECT_EQ(runs(), 4u);
  // Asked again: the runs exist, so the answer is immediate.
  EXPECT_EQ(answer_to({rung_, base_}).speedup.verdict, Verdict::faster);
  EXPECT_EQ(runs(), 4u);
  EXPECT_EQ(answer_to({base_, rung_}).speedup.verdict, Verdict::slower);
}

// After six runs nobody looks: a clear answer waits for the next look, and isn't given up as hopeless.
TEST_F(SpeedupConfirmationTest, AClearAnswerBetweenTwoLooksWaitsForTheNext) {
  measure({.rung_factor = 0.5, .between_runs = 0.001});
  session_.repeat({base_, rung_}, 5);
  wait_for_runs(10);
  const SpeedupAnswer& answer = answer_to({.run = rung_, .base = base_, .max_repeats = 10});
  EXPECT_EQ(answer.speedup.verdict, Verdict::faster) << answer.reason;
  EXPECT_EQ(answer.repeats, 7);
}

TEST_F(SpeedupConfirmationTest, WhatStaysInTheNoiseIsRepeatedUpToTheLimit) {
  measure({.rung_factor = 0.98, .between_runs = 0.2});
  const SpeedupAnswer& answer = answer_to({.run = rung_, .base = base_, .max_repeats = 3});
  EXPECT_EQ(state(), State::answered);
  EXPECT_EQ(answer.speedup.verdict, Verdict::cannot_tell);
  EXPECT_TRUE(answer.speedup.ci95.known());
  EXPECT_EQ(answer.repeats, 3);
  EXPECT_EQ(session_.confirmation()->estimates().size(), 3u);
  EXPECT_TRUE(answer.reason.starts_with("Still inconclusive after 3 runs each. ")) << answer.reason;
  EXPECT_EQ(runs(), 6u);
}

TEST_F(SpeedupConfirmationTest, WhatMoreRepeatsWouldHardlySettleIsGivenUp) {
  measure({.rung_factor = 0.98, .between_runs = 0.2});
  const SpeedupAnswer& answer = answer_to({.run = rung_, .base = base_, .max_repeats = 10});
  EXPECT_EQ(state(), State::answered);
  EXPECT_EQ(answer.speedup.verdict, Verdict::cannot_tell);
  EXPECT_EQ(answer.repeats, 3);
  EXPECT_TRUE(answer.reason.starts_with("Still inconclusive after 3 runs each. ")) << answer.reason;
}

TEST_F(SpeedupConfirmationTest, AnImpossibleRungIsNeverFaster) {
  measure({.rung_factor = 0.5, .impossible_from = 1});
  const SpeedupAnswer& answer = answer_to({rung_, base_});
  EXPECT_EQ(answer.speedup.verdict, Verdict::cannot_tell);
  EXPECT_EQ(answer.speedup.worst(), Trust::impossible);
  EXPECT_NE(answer.reason.find("is impossible: "), std::string::npos) << answer.reason;
  EXPECT_EQ(runs(), 2u) << "no repeat can make it possible";
}

TEST_F(SpeedupConfirmationTest, RunsOfTwoMachinesAreNotRepeatedSinceTheirFactorSaysNothing) {
  measure({.rung_factor = 0.5});
  stepladder::Run elsewhere = session_.store().existing_run(rung_);
  elsewhere.environment = R"({"host":"elsewhere"})";
  session_.store().update_run(elsewhere);
  const SpeedupAnswer& answer = answer_to({rung_, base_});
  EXPECT_EQ(state(), State::answered);
  EXPECT_EQ(answer.speedup.verdict, Verdict::cannot_tell);
  EXPECT_NE(answer.reason.find("between two machines"), std::string::npos) << answer.reason;
  EXPECT_EQ(runs(), 2u);
}

TEST_F(SpeedupConfirmationTest, AnImpossibleRepeatOrBaselineCountsToo) {
  measure({.rung_factor = 0.5, .impossible_from = 3});  // of the second round's two, the latter
  EXPECT_EQ(answer_to({rung_, base_}).speedup.worst(), Trust::impossible);
  EXPECT_EQ(answer_to({rung_, base_}).speedup.verdict, Verdict::cannot_tell);
  EXPECT_EQ(answer_to({base_, rung_}).speedup.worst(), Trust::impossible);
}

TEST_F(SpeedupConfirmationTest, ADoubtfulRungIsNotFasterEither) {
  measure({.rung_factor = 0.5, .sync = Sync::none});
  const SpeedupAnswer& answer = answer_to({rung_, base_});
  EXPECT_EQ(answer.speedup.verdict, Verdict::cannot_tell);
  EXPECT_EQ(answer.speedup.worst(), Trust::doubtful);
}

TEST_F(SpeedupConfirmationTest, DisturbedRunsAreMeasuredAgainAndLeftOut) {
  measure({.rung_factor = 0.5, .quiet_from = 2});
  const SpeedupAnswer& answer = answer_to({rung_, base_});
  EXPECT_EQ(answer.speedup.verdict, Verdict::faster);
  EXPECT_EQ(answer.speedup.worst(), Trust::trusted);
  EXPECT_EQ(answer.repeats, 2);
  EXPECT_EQ(answer.reason, "The verdict is clear after 2 runs each. Left out: 2 that other programs disturbed.");
  EXPECT_EQ(runs(), 6u);
}

TEST_F(SpeedupConfirmationTest, AMachineThatIsNeverQuietConfirmsNothing) {
  measure({.rung_factor = 0.5, .quiet_from = 1000});
  const SpeedupAnswer& answer = answer_to({.run = rung_, .base = base_, .max_repeats = 3});
  EXPECT_EQ(state(), State::answered);
  EXPECT_EQ(answer.speedup.verdict, Verdict::cannot_tell);
  EXPECT_EQ(answer.speedup.worst(), Trust::doubtful);
  EXPECT_NE(answer.reason.find("Others used 1.9 of 2 cores"), std::string::npos) << answer.reason;
  EXPECT_EQ(runs(), 6u);
}

TEST_F(SpeedupConfirmationTest, ARepeatThatFailsEndsItWithItsReason) {
  measure({.rung_factor = 0.5, .fails_after_runs = 3});
  const SpeedupAnswer& answer = answer_to({rung_, base_});
  EXPECT_EQ(state(), State::failed);
  EXPECT_EQ(answer.speedup.verdict, Verdict::cannot_tell);
  EXPECT_NE(answer.reason.find("failed (on purpose), so no more repeats are made"), std::string::npos) << answer.reason;
}

TEST_F(SpeedupConfirmationTest, RunsOutsideALadderAreRepeatedByTheirRecipes) {
  behaviour = {.rung_factor = 0.5};
  Recipe recipe;
  recipe.steps = 100;
  recipe.device = "cpu";
  const RunId base = session_.launch_run({.base = recipe}, DeviceReport{});
  const RunId run = session_.launch_run({.base = recipe, .stages = {"fused-adamw"}}, DeviceReport{});
  wait_for_runs(2);
  const SpeedupAnswer& answer = answer_to({run, base});
  EXPECT_EQ(answer.speedup.verdict, Verdict::faster);
  EXPECT_NEAR(answer.speedup.factor, 2, 0.05);
  EXPECT_EQ(answer.repeats, 2);
  EXPECT_EQ(runs(), 4u);
}

TEST_F(SpeedupConfirmationTest, AQuestionThatMakesNoSenseIsRefused) {
  measure({.fails_after_runs = 1});
  EXPECT_THROW(session_.confirm({rung_, base_}), RecipeError) << "the rung has no finished run";
  EXPECT_THROW(session_.confirm({base_, base_}), RecipeError);
  EXPECT_THROW(session_.confirm({77, base_}), StorageError);
  const RunId imported = session_.store().insert_finished({.name = "log", .source = "import"}, {});
  EXPECT_THROW(session_.confirm({imported, base_}), RecipeError);
  EXPECT_EQ(session_.confirmation(), nullptr);
}

TEST_F(SpeedupConfirmationTest, StoppedItBeginsNoFurtherRound) {
  measure({.rung_factor = 0.98, .between_runs = 0.2});
  session_.confirm({.run = rung_, .base = base_, .quiet_patience = {}});
  EXPECT_EQ(session_.confirmation()->round().size(), 2u);
  session_.stop_confirming();
  EXPECT_EQ(state(), State::stopped);
  wait_for_runs(2);
  session_.drain();
  EXPECT_EQ(runs(), 4u);
  EXPECT_EQ(session_.confirmation()->answer().speedup.verdict, Verdict::cannot_tell);
}

TEST_F(SpeedupConfirmationTest, ARepeatThatAnotherProcessDeletesEndsIt) {
  measure({.rung_factor = 0.98, .between_runs = 0.2});
  session_.confirm({.run = rung_, .base = base_, .quiet_patience = {}});
  const RunId repeat = session_.confirmation()->round().front();
  while (!is_over(session_.store().existing_run(repeat).status))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  session_.store().curation().set(repeat, {.deleted_at = 1});
  session_.store().bin().empty(2);
  while (session_.confirmation()->is_open()) session_.wait_and_drain(std::chrono::milliseconds(5));
  EXPECT_EQ(state(), State::failed);
  EXPECT_NE(session_.confirmation()->answer().reason.find("no longer in the database"), std::string::npos);
}

}  // namespace
}  // namespace stepladder
