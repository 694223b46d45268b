// "Verify gain" from the button to the answer: a real session, and a trainer whose step times are known.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <thread>

#include "app/desktop/ui_test_anchors.h"
#include "app/desktop/workspace/verification.h"
#include "app/runs/loaded_runs.h"
#include "app/text/verdict_text.h"
#include "engine/trainer_library.h"
#include "tests/panels/headless.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

constexpr double base_ms = 10;

// How the next trainings behave; the trainer is a plain function, so this is shared. Reset by every test.
struct Behaviour {
  double rung_factor = 1;     // of a rung's step time to the baseline's
  double between_runs = 0;    // a run is faster or slower than another by this share
  int fails_after_runs = -1;  // how many runs finish before one fails; -1: no failure
  bool holds = false;         // while true, repeats don't end
  double params = 10;
  std::string hardware;

  int runs = 0;
};
std::mutex mutex;
Behaviour behaviour;

void train(const TrainingJob& job, RunControl& control, const std::function<void(const RunEvent&)>& emit) {
  const RunId run = job.run;
  const auto now = [] {
    const std::lock_guard lock(mutex);
    return behaviour;
  };
  {
    const std::lock_guard lock(mutex);
    ++behaviour.runs;
  }
  const Behaviour how = now();
  emit(RunStarted{.run = run,
                  .at = 1000,
                  .tokens_per_step = 768,
                  .params = static_cast<std::int64_t>(how.params),
                  .device = "cpu",
                  .hardware = how.hardware,
                  .precision = "fp32"});
  const bool fails = how.fails_after_runs >= 0 && how.runs > how.fails_after_runs;
  const bool is_rung = job.recipe.optimizer == Optimizer::fused_adamw;
  // The same spread in every round, opposite on the two rungs, but never the same two runs: -1, +1, -0.5, +0.5, ...
  const int place = (how.runs - 1) / 2;
  const double spread = how.between_runs * (place % 2 == 0 ? -1 : 1) * (is_rung ? -1 : 1) / (1 + place / 2 * 0.5);
  const double dt_ms = base_ms * (is_rung ? how.rung_factor : 1) * (1 + spread);
  for (std::int64_t step = 1; step <= (fails ? job.recipe.steps / 2 : job.recipe.steps); ++step) {
    const double noise = 1 + 0.001 * static_cast<double>(step * 7919 % 11 - 5);
    emit(StepRecord{.run = run,
                    .step = step,
                    .loss = 4.0 / static_cast<double>(step),
                    .dt_ms = dt_ms * noise,
                    .tokens = 768,
                    .at = 1000});
  }
  if (fails) return emit(RunEnded{.run = run, .at = 2000, .status = RunStatus::failed, .reason = "on purpose"});
  while (how.runs > 2 && now().holds && !control.stop_token().stop_requested())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  emit(RunEnded{.run = run, .at = 2000, .status = RunStatus::finished});
}

DeviceReport machine() {
  return {};
}

const TrainerLibrary fake = {.probe = machine, .train = train};

class QuestionTest : public testing::Test {
 protected:
  QuestionTest() { behaviour = {}; }

  // A ladder of two rungs has been measured, and its window is open.
  void open(Behaviour how) {
    behaviour = how;
    LadderRequest asked;
    asked.base.steps = 100;
    asked.base.device = "cpu";
    asked.rungs = parse_rungs("baseline,fused-adamw");
    ladder_ = session_.launch_ladder(asked, machine()).ladder;
    for (int ended = 0; ended < 2;) {
      for (const RunEvent& event : session_.wait_and_drain(std::chrono::milliseconds(50)))
        ended += std::holds_alternative<RunEnded>(event) ? 1 : 0;
    }
    session_.flush();
    app_.emplace(session_.store(), &session_, DesktopSettings{.panels = {"ladder"}});
    app_->workspace().patience = std::chrono::hours(1);  // so that results are complete even on a slow machine
  }
  void ask() {
    ASSERT_TRUE(imgui_.click(*app_, "ladder.rung.1"));
    ASSERT_TRUE(imgui_.click(*app_, "ladder.real"));
  }
  void ask_and_hold() {  // the first round waits at its end
    open({.rung_factor = 0.98, .between_runs = 0.2, .holds = true});
    ask();
    wait_until([&] { return runs_of_rung(0) == 2 && runs_of_rung(1) == 2; });
  }
  void wait_until(const std::function<bool()>& is_so) { ASSERT_TRUE(imgui_.frames_until(*app_, is_so)); }
  void wait_for_answer() {
    wait_until([&] { return !verification().open; });
    session_.flush();
  }
  const Verification& verification() { return *app_->workspace().verification; }
  std::size_t runs_of_rung(int rung) {
    const auto runs = session_.store().runs_of(ladder_);
    return static_cast<std::size_t>(
        std::count_if(runs.begin(), runs.end(), [&](const stepladder::Run& run) { return run.rung == rung; }));
  }
  bool shows_answer(const std::string& word) {
    return imgui_.frames_until(*app_, [&] { return ui_test_anchors::find("ladder.answer.1." + word).has_value(); });
  }
  std::string said(bool error) {
    std::string text;
    for (const Message& message : app_->messages()) text += message.is_error == error ? message.text : "";
    return text;
  }

  TemporaryFolder folder_;
  Session session_{folder_ / "runs.db", {}, &fake};
  Headless imgui_;
  std::optional<DesktopApp> app_;
  LadderId ladder_ = 0;
};

TEST_F(QuestionTest, ACleanGainIsClearAfterOneRound) {
  open({.rung_factor = 0.5, .between_runs = 0.0002});
  ask();
  wait_for_answer();
  ASSERT_EQ(verification().answers.size(), 2u);
  EXPECT_EQ(verification().answers.back().verdict, Verdict::faster);
  EXPECT_NEAR(verification().answers.back().factor, 2, 0.05);
  EXPECT_EQ(runs_of_rung(0), 2u);
  EXPECT_EQ(runs_of_rung(1), 2u);
  EXPECT_NE(verification().reason.find("The verdict is clear after 2 runs each"), std::string::npos);
  EXPECT_EQ(said(false), "") << "the card says it";
}

TEST_F(QuestionTest, ADoubtfulOneIsRepeatedUntilMoreWouldHardlySettleIt) {
  open({.rung_factor = 0.98, .between_runs = 0.05});
  ask();
  wait_for_answer();
  ASSERT_EQ(verification().answers.size(), 3u) << "one before, and one after each of two rounds";
  EXPECT_EQ(verification().answers.back().verdict, Verdict::cannot_tell);
  EXPECT_TRUE(verification().answers.back().ci95.known());
  EXPECT_TRUE(imgui_.frames_until(*app_, [] {
    return ui_test_anchors::find("verification.Verified rung 1 over the baseline in 2 rounds").has_value();
  })) << "the interval is that of the rung's row, which counts all of its runs";
  EXPECT_EQ(runs_of_rung(0), 3u);
  EXPECT_EQ(runs_of_rung(1), 3u);
  EXPECT_NE(verification().reason.find("Still inconclusive after 3 runs each"), std::string::npos);
  EXPECT_TRUE(shows_answer("can't tell")) << "as the card says";
}

TEST_F(QuestionTest, TheAnswerIsTheFactorOverTheBaselineThatWasChosen) {
  open({.rung_factor = 0.5, .between_runs = 0.002});
  ASSERT_TRUE(imgui_.click(*app_, "ladder.rung.1"));
  imgui_.press(*app_, ImGuiKey_B);
  ASSERT_EQ(app_->workspace().selection.baseline_rung, 1);
  ASSERT_TRUE(imgui_.click(*app_, "ladder.rung.0"));
  ASSERT_TRUE(imgui_.click(*app_, "ladder.real"));
  wait_for_answer();
  EXPECT_EQ(verification().answers.back().verdict, Verdict::slower);
  EXPECT_NEAR(verification().answers.back().factor, 0.5, 0.02);
}

TEST_F(QuestionTest, TheLadderSaysWhatTheVerificationSays) {
  open({.rung_factor = 0.9, .between_runs = 0.01});
  ask();
  wait_for_answer();
  const HardwareTable hardware = app_->workspace().hardware;
  const std::vector<LoadedRun> runs = load_runs(session_.store(), session_.store().runs_of(ladder_));
  const RungJudgement judged = judge_rungs(measured(runs), hardware)[1];
  const Gain& answer = verification().answers.back();
  EXPECT_EQ(judged.own_step.verdict, answer.verdict);
  EXPECT_EQ(judged.own_step.ci95.low, answer.ci95.low);
  EXPECT_EQ(judged.own_step.ci95.high, answer.ci95.high);
  EXPECT_TRUE(shows_answer(std::string(answer_word(judged.answer()))));
}

TEST_F(QuestionTest, AnImpossibleRungIsNeverCalledFaster) {
  open({.rung_factor = 0.5, .between_runs = 0.002, .params = 1e15, .hardware = "NVIDIA A100-SXM4-40GB"});
  ImGui::GetIO().DisplaySize.y = 2000;  // the reasons are above the button
  ask();
  wait_for_answer();
  ASSERT_EQ(verification().answers.size(), 1u);
  EXPECT_EQ(verification().answers.back().verdict, Verdict::cannot_tell);
  EXPECT_NE(verification().reason.find("is impossible"), std::string::npos) << verification().reason;
  EXPECT_EQ(said(true), "") << "an answer is no error";
  EXPECT_EQ(said(false).find("faster"), std::string::npos) << said(false);
  EXPECT_EQ(runs_of_rung(1), 1u) << "no repeat can make it possible";
}

TEST_F(QuestionTest, StopEmptiesTheQueueAndSaysHowFarItCame) {
  ask_and_hold();
  const auto before = std::chrono::steady_clock::now();
  ASSERT_TRUE(imgui_.click(*app_, "verification.stop"));
  EXPECT_FALSE(verification().open);
  wait_until([&] { return !app_->workspace().running() && app_->workspace().waiting().empty(); });
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(30)) << "the held run doesn't end itself";
  EXPECT_EQ(verification().rounds(), 0u);
  EXPECT_TRUE(verification().stopped) << "so that nothing says Verified";
  wait_until([] {
    return ui_test_anchors::find(
               "verification.Verification of rung 1 over the baseline: stopped before the first round")
        .has_value();
  });
  wait_until([&] { return verification().round.empty(); });
  EXPECT_EQ(said(true), "");
  ASSERT_TRUE(imgui_.click(*app_, "verification.stop"));  // Dismiss
  EXPECT_TRUE(verification().answers.empty());
}

TEST_F(QuestionTest, TheLadderHasAButtonToStopAsking) {
  ask_and_hold();
  ASSERT_TRUE(imgui_.click(*app_, "verification.stop"));
  EXPECT_FALSE(verification().open);
}

TEST_F(QuestionTest, ARepeatThatFailsEndsTheQuestionAndNotTheWindow) {
  open({.rung_factor = 0.98, .between_runs = 0.2, .fails_after_runs = 4});
  ask();
  wait_for_answer();
  EXPECT_EQ(verification().answers.size(), 2u) << "the round before it counts";
  EXPECT_NE(verification().reason.find("failed (on purpose), so no more repeats are made"), std::string::npos);
  EXPECT_LE(runs_of_rung(1), 3u);
}

TEST_F(QuestionTest, ARungThatNeverWentToItsEndIsRepeatedFirst) {
  open({.fails_after_runs = 1});
  ASSERT_TRUE(imgui_.click(*app_, "ladder.rung.1"));
  ui_test_anchors::keep();
  for (int i = 0; i < 3; ++i) imgui_.frame(*app_);
  EXPECT_FALSE(ui_test_anchors::find("ladder.real")) << "there is nothing to verify yet";
  EXPECT_TRUE(ui_test_anchors::find("ladder.repeat_lacking")) << "what is missing is offered";
  EXPECT_FALSE(verification().open);
  EXPECT_EQ(runs_of_rung(1), 1u);
}

}  // namespace
}  // namespace stepladder
