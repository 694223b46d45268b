// The view Tries: empty, a series with every verdict, live, and large; and its patches.
#include "app/desktop/models/tries_view.h"

#include <gtest/gtest.h>

#include <cmath>

#include "app/panels/tries/patch.h"
#include "tests/panels/headless.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

constexpr const char* patch =
    "diff --git a/train.py b/train.py\nindex 1..2 100644\n--- a/train.py\n+++ b/train.py\n@@ -1,3 +1,4 @@\n import os\n"
    "-LR = 0.1\n-WD = 0\n+LR = 0.2\n+WD = 0.1\n+BETA = 0.9\n";

class TriesView_ : public testing::Test {
 protected:
  // The unchanged state, measured by runs at `first` and beside it.
  void begin(double first) {
    ladder_ = store_.create_ladder({.name = "tries"});
    store_.tries().save(
        {.ladder = ladder_, .checkout = "/home/me/nanochat", .plan = R"({"budget_runs":40})", .begun_at = 100});
    for (const double off : {-0.001, 0.001}) run(0, 0, first + off);
    store_.tries().save(ladder_, {.number = 0,
                                  .verdict = "first",
                                  .answer = R"({"metric":"val_bpb","better":"lower","mean":1.0,"noise_sd":0.001})"});
  }
  void run(std::int64_t during, std::int64_t state, double value) {
    const RunId id = store_.create_run({.name = "try " + std::to_string(state),
                                        .ladder = ladder_,
                                        .rung = static_cast<int>(state),
                                        .status = RunStatus::finished});
    store_.tries().add(ladder_,
                       {.place = ++place_, .during = during, .state = state, .run = id, .value = value, .wall_s = 300});
  }
  void judge(std::int64_t number, std::int64_t parent, const std::string& verdict, double value, double change) {
    if (verdict != "failed") run(number, number, value);
    store_.tries().save(
        ladder_,
        {.number = number,
         .message = "change " + std::to_string(number),
         .parent = parent,
         .patch = patch,
         .patch_bytes = 200,
         .verdict = verdict,
         .answer = verdict.empty() ? ""
                                   : R"({"metric":"val_bpb","reason":"because","difference":)" +
                                         std::to_string(change) + R"(,"ci95":[)" + std::to_string(change - 0.001) +
                                         "," + std::to_string(change + 0.001) + "]}"});
  }
  bool shows(const std::string& anchor) {
    for (int i = 0; i < 3; ++i) imgui_.frame(*app_);
    return ui_test_anchors::find(anchor).has_value();
  }
  const TriesView& view() { return *app_->workspace().tries; }
  void open() {
    ImGui::GetIO().DisplaySize = ImVec2(1600, 900);
    app_.emplace(store_, nullptr, DesktopSettings{.panels = {"tries"}});
    ASSERT_TRUE(imgui_.frames_until(*app_, [&] { return app_->workspace().tries != nullptr; }));
  }

  TemporaryFolder folder_;
  RunStore store_ = RunStore::open(folder_ / "tries.db");
  Headless imgui_;
  std::optional<DesktopApp> app_;
  LadderId ladder_ = 0;
  std::int64_t place_ = 0;
};

TEST_F(TriesView_, SaysHowASeriesBegins) {
  open();
  EXPECT_TRUE(shows("tries.empty"));
  ASSERT_TRUE(imgui_.click(*app_, "tries.copy"));
  EXPECT_NE(std::string(ImGui::GetClipboardText()).find("stepladder try begin"), std::string::npos);
  ASSERT_TRUE(imgui_.click(*app_, "tries.example"));
  EXPECT_TRUE(imgui_.frames_until(*app_, [&] { return ui_test_anchors::find("tries.row.100").has_value(); }));
}

TEST_F(TriesView_, ShowsEveryVerdictAndTheChosenTrysPatchRunsAndOutput) {
  begin(1.0);
  judge(1, 0, "kept", 0.98, -0.02);
  judge(2, 1, "worse", 1.2, 0.22);
  judge(3, 1, "failed", missing, 0);
  judge(4, 1, "cannot-tell", 0.9801, 0.0001);
  judge(5, 1, "", missing, 0);
  open();
  EXPECT_EQ(view().kept, 1);
  EXPECT_EQ(view().last_kept, 1);
  ASSERT_EQ(view().figures.size(), 6u);
  EXPECT_NEAR(view().figures[1].ci95.low, 0.979, 1e-9) << "the answer's interval, over what was kept before";
  EXPECT_NEAR(view().figures[1].ci95.high, 0.981, 1e-9);
  EXPECT_TRUE(is_missing(view().figures[3].value));
  EXPECT_EQ(view().figures[5].verdict, "interrupted") << "no program works on it";
  EXPECT_TRUE(shows("tries.verdict.interrupted")) << "the newest one is chosen";
  for (const auto& [number, verdict] : {std::pair{"1", "kept"}, {"2", "worse"}, {"3", "failed"}}) {
    ASSERT_TRUE(imgui_.click(*app_, std::string("tries.row.") + number));
    EXPECT_TRUE(shows(std::string("tries.verdict.") + verdict));
    for (const char* part : {"Runs", "Output", "Patch"})
      ASSERT_TRUE(imgui_.click(*app_, std::string("tries.part.") + part));
  }
}

TEST_F(TriesView_, SaysWhatAChangeIsAgainst) {
  begin(1.0);
  judge(1, 0, "kept", 0.98, -0.02);
  judge(2, 1, "cannot-tell", 0.99, 0.0123456);
  for (int turn = 0; turn < 2; ++turn) run(2, 1, 0.98);
  open();
  EXPECT_EQ(view().figures[1].beside, "against what the runs before it foretold");
  EXPECT_EQ(view().figures[2].beside, "over 2 turns with the state kept before");
  EXPECT_EQ(view().figures[2].change, "val_bpb +0.0123, 95 % interval 0.0113 to 0.0133") << "as far as it is known";
  EXPECT_TRUE(shows("tries.beside"));
}

TEST_F(TriesView_, TheBandHoldsTheMachinesDrift) {
  begin(1.0);
  judge(1, 0, "cannot-tell", 1.001, 0.001);
  open();
  EXPECT_NEAR(view().half_band, 1.96 * 0.001, 1e-12) << "three runs tell nothing of a drift";
  for (int number = 2; number <= 40; ++number) judge(number, 0, "cannot-tell", 1 + 0.01 * std::sin(number / 6.0), 0);
  judge(41, 0, "worse", 2, 1);
  open();
  EXPECT_GT(view().half_band, 0.009);
  EXPECT_LT(view().half_band, 0.0125) << "a clear change is no noise";
}

TEST_F(TriesView_, DrawsThePartsOfAKeptTry) {
  begin(1.0);
  judge(1, 0, "kept", 0.98, -0.02);
  open();
  ASSERT_TRUE(imgui_.click(*app_, "tries.part.Parts"));
  EXPECT_FALSE(shows("tries.tornado")) << "it wasn't taken apart yet";
  store_.tries().save(ladder_, {.number = 1, .verdict = "kept", .answer = R"({"metric":"val_bpb","parts":{
      "metric":"val_bpb","parts":[7,{"part":1,"what":"a.py:3","difference":-0.02,"ci95":[-0.03,-0.01]},
      {"part":2,"what":"a.py:9","difference":0.001,"ci95":null},{"part":3,"difference":"much"}]}})"});
  ASSERT_TRUE(imgui_.frames_until(*app_, [&] { return shows("tries.tornado"); }));
}

TEST_F(TriesView_, FollowsASeriesThatGoesOn) {
  begin(1.0);
  open();
  EXPECT_EQ(view().kept, 0);
  judge(1, 0, "kept", 0.98, -0.02);
  ASSERT_TRUE(imgui_.frames_until(*app_, [&] { return view().kept == 1; }));
  imgui_.frame(*app_);
  EXPECT_TRUE(app_->workspace().find(view().shown.runs.back().run)) << "its runs are read too";
}

TEST_F(TriesView_, DrawsThreeHundredAndABrokenAnswer) {
  begin(1.0);
  for (int i = 1; i <= 300; ++i) judge(i, i / 20 * 20, i % 20 == 0 ? "kept" : "worse", 1 - 0.0001 * i, -0.0001);
  store_.tries().save(ladder_, {.number = 301, .verdict = "kept", .answer = R"({"ci95":["a"],"reason":7})"});
  open();
  EXPECT_EQ(view().figures.size(), 302u);
  EXPECT_GT(imgui_.frame(*app_), 1'000);
  ASSERT_TRUE(imgui_.click(*app_, "tries.kept"));
  EXPECT_TRUE(shows("tries.row.300"));
  EXPECT_FALSE(ui_test_anchors::find("tries.row.299"));
  app_->show("ladder");
  EXPECT_FALSE(shows("ladder.rung.0")) << "nobody has chosen it there";
  app_->workspace().selection.show_ladder(ladder_);
  EXPECT_TRUE(shows("ladder.rung.0"));
  EXPECT_TRUE(shows("ladder.rung.20"));
  EXPECT_FALSE(ui_test_anchors::find("ladder.rung.1")) << "only what was kept is a rung";
  ASSERT_TRUE(imgui_.click(*app_, "ladder.tries"));
  EXPECT_TRUE(shows("tries.chart"));
}

TEST(Patch, RemovedLinesAreBesideTheAddedOnes) {
  const std::vector<PatchRow> rows = patch_rows(patch);
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[0].kind, PatchRow::Kind::file);
  EXPECT_EQ(rows[0].before, "train.py");
  EXPECT_EQ(rows[2].kind, PatchRow::Kind::same);
  EXPECT_EQ(rows[3].before, "LR = 0.1");
  EXPECT_EQ(rows[3].after, "LR = 0.2");
  EXPECT_EQ(rows[5].line_before, 0);
  EXPECT_EQ(rows[5].line_after, 4);
  EXPECT_EQ(patch_rows("@@ -x\n\n-\n+\n@@ -1,99999999999 +1 @@\n").size(), 4u) << "what isn't a patch is text";
  EXPECT_EQ(patch_rows("@@ -1,2 +1,2 @@\n--- a\n+++ b\n x\n").size(), 3u) << "a line that looks like a head";
}

}  // namespace
}  // namespace stepladder
