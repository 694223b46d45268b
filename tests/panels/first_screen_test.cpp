// What an empty project shows: what the program is for, three ways in, and an example that makes the point.
#include <gtest/gtest.h>

#include <optional>

#include "app/desktop/models/import_preview.h"
#include "app/desktop/ui_test_anchors.h"
#include "tests/panels/headless.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

class FirstScreen : public testing::Test {
 protected:
  void open(const char* view) { app_.emplace(store_, nullptr, DesktopSettings{.panels = {view}}); }
  bool shows(const std::string& anchor) {
    ui_test_anchors::keep();
    for (int i = 0; i < 4; ++i) imgui_.frame(*app_);
    return ui_test_anchors::find(anchor).has_value();
  }
  // Opens the example with this button.
  void open_example(const std::string& button) {
    ASSERT_TRUE(imgui_.click(*app_, button));
    ASSERT_TRUE(imgui_.frames_until(*app_, [&] { return !app_->workspace().import->is_reading(); }));
  }

  TemporaryFolder folder_;
  RunStore store_ = RunStore::open(folder_ / "first.db");
  Headless imgui_;
  std::optional<DesktopApp> app_;
};

TEST_F(FirstScreen, HasThreeWaysInAndExamples) {
  for (const char* view : {"live", "history", "run", "ladder"}) {
    open(view);
    for (const char* name : {"start.launch", "start.import", "start.follow", "start.rtx3080-ladder.txt",
                             "start.night-of-tries.db", "start.a100-three-rungs.csv", "start.example"})
      EXPECT_TRUE(shows(name)) << view << " " << name;
  }
}

TEST_F(FirstScreen, IsGoneWhenTheProjectHasARun) {
  store_.insert_finished({.name = "one", .source = "import"}, {});
  for (const char* view : {"live", "ladder"}) {
    open(view);
    EXPECT_FALSE(shows("start.import")) << view;
    EXPECT_TRUE(shows("start.launch")) << view;
    ASSERT_TRUE(imgui_.click(*app_, "start.history"));
    EXPECT_TRUE(shows("history.filter")) << view;
  }
}

TEST_F(FirstScreen, AnExampleOpensOnWhatItShowsAndLeavesTheWaysIn) {
  open("ladder");
  open_example("start.rtx3080-ladder.txt");
  const auto& runs = app_->workspace().runs();
  ASSERT_EQ(runs.size(), 11u) << "without a further click";
  EXPECT_NEAR(runs[1].summary.tokens_per_s, 149'000, 1000) << "beyond what the card can do";
  EXPECT_TRUE(imgui_.frames_until(*app_, [] { return ui_test_anchors::find("ladder.rung.10").has_value(); }));
  EXPECT_TRUE(shows("start.launch")) << "nothing here is the user's own";
  EXPECT_EQ(app_->workspace().selection.rung, 8) << "the farthest beyond what the card can do";
  open_example("start.rtx3080-ladder.txt");
  EXPECT_EQ(runs.size(), 11u) << "it is in the project already";
  ASSERT_TRUE(imgui_.click(*app_, "start.remove"));
  EXPECT_TRUE(runs.empty());
  imgui_.press(*app_, ImGuiKey_Z, true);
  EXPECT_EQ(runs.size(), 11u);
}

TEST_F(FirstScreen, AnExampleShowsThatItIsImportedAndTakesNoOtherViewAway) {
  open("history");
  ASSERT_TRUE(imgui_.click(*app_, "start.rtx3080-ladder.txt"));
  EXPECT_TRUE(app_->workspace().import->is_reading() ? shows("import.forget") : true);
  EXPECT_FALSE(shows("history.filter")) << "Import shows its progress, then the ladder opens";
  open("history");
  ASSERT_TRUE(imgui_.click(*app_, "start.night-of-tries.db"));
  imgui_.press(*app_, ImGuiKey_5, true);  // History
  ASSERT_TRUE(imgui_.frames_until(*app_, [&] { return !app_->workspace().import->is_reading(); }));
  EXPECT_TRUE(shows("history.filter"));
}

TEST_F(FirstScreen, AReadOnlyProjectSaysFirstThatNothingIsImported) {
  open("import");
  EXPECT_FALSE(shows("import.read_only"));
  EXPECT_TRUE(shows("start.rtx3080-ladder.txt"));
  app_->workspace().read_only = "the file may only be read";
  EXPECT_TRUE(shows("import.read_only"));
  EXPECT_FALSE(shows("start.rtx3080-ladder.txt"));
}

TEST_F(FirstScreen, APossibleExampleOpensOnItsLadderAndItsCard) {
  open("ladder");
  EXPECT_TRUE(app_->workspace().runs().empty());
  open_example("start.a100-three-rungs.csv");
  ASSERT_EQ(app_->workspace().runs().size(), 3u);
  EXPECT_EQ(app_->workspace().runs()[2].run.hardware, "NVIDIA A100");
  EXPECT_TRUE(imgui_.frames_until(*app_, [] { return ui_test_anchors::find("ladder.rung.2").has_value(); }));
}

TEST_F(FirstScreen, AnExampleOfTriesOpensInTries) {
  open("import");
  open_example("start.night-of-tries.db");
  EXPECT_TRUE(imgui_.frames_until(*app_, [] { return ui_test_anchors::find("tries.row.100").has_value(); }));
  EXPECT_EQ(app_->workspace().shown_ladder(), nullptr) << "a series of tries isn't a ladder that Ladder chooses";
  open("ladder");
  EXPECT_TRUE(shows("start.launch"));
  EXPECT_FALSE(shows("ladder.tries"));
}

TEST_F(FirstScreen, AllExamplesAreRemovedAndBroughtBack) {
  open("live");
  const auto& traces = app_->workspace().traces;
  ASSERT_TRUE(imgui_.click(*app_, "start.example"));
  ASSERT_TRUE(imgui_.frames_until(*app_, [&] { return traces.size() == 2; }));
  open("ladder");
  open_example("start.rtx3080-ladder.txt");
  ASSERT_TRUE(imgui_.click(*app_, "start.remove"));
  EXPECT_TRUE(app_->workspace().runs().empty());
  EXPECT_TRUE(app_->workspace().traces.empty());
  imgui_.press(*app_, ImGuiKey_Z, true);
  EXPECT_EQ(app_->workspace().runs().size(), 11U);
  EXPECT_EQ(app_->workspace().traces.size(), 2U);
}

TEST_F(FirstScreen, ExamplesAreFoundAmongAllActions) {
  open("history");
  imgui_.press(*app_, ImGuiKey_K, true);
  ImGui::GetIO().AddInputCharactersUTF8("exam");
  ASSERT_TRUE(shows("palette.row.2"));
  imgui_.press(*app_, ImGuiKey_Enter);
  EXPECT_TRUE(imgui_.frames_until(*app_, [&] { return app_->workspace().runs().size() == 11; }));
}

}  // namespace
}  // namespace stepladder
