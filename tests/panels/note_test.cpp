// A run's tags and note: no typed text is lost.
#include <gtest/gtest.h>

#include "storage/database/run_store.h"
#include "tests/panels/headless.h"

namespace stepladder {
namespace {

class Note : public testing::Test {
 protected:
  Note() {
    for (const char* name : {"first", "second"}) {
      stepladder::Run run;
      run.name = name;
      run.status = RunStatus::finished;
      run.created_at = 1;
      runs_.push_back(store_.insert_finished(run, std::vector<StepRecord>{{.step = 1, .loss = 3, .dt_ms = 1}}));
    }
  }
  void open(RunId run) {
    app_.emplace(store_, nullptr, DesktopSettings{.panels = {"run"}, .views = {{"run", "Note"}}});
    app_->workspace().selection.shown_run = run;
    for (int i = 0; i < 3; ++i) imgui_.frame(*app_);
  }
  void type(const std::string& anchor, const std::string& text) {
    ASSERT_TRUE(imgui_.click(*app_, anchor));
    ImGui::GetIO().AddInputCharactersUTF8(text.c_str());
    imgui_.frames(*app_);
  }
  Curation kept(RunId run) { return store_.curation().all()[run]; }

  RunStore store_ = RunStore::in_memory();
  Headless imgui_;
  std::optional<DesktopApp> app_;
  std::vector<RunId> runs_;
};

TEST_F(Note, IsKeptWhenItsFieldIsLeftByEscape) {
  open(runs_[0]);
  type("run.note", "worth another look");
  EXPECT_EQ(kept(runs_[0]).note, "");
  imgui_.press(*app_, ImGuiKey_Escape);
  EXPECT_EQ(kept(runs_[0]).note, "worth another look");
  imgui_.press(*app_, ImGuiKey_Z, true);
  EXPECT_EQ(kept(runs_[0]).note, "") << "taken back";
  for (int i = 0; i < 3; ++i) imgui_.frame(*app_);
  EXPECT_EQ(kept(runs_[0]).note, "") << "and not kept again, since the field shows what is kept";
}

TEST_F(Note, TheOrderOfTagsIsNoChange) {
  store_.curation().set(runs_[0], {.tags = {"fast", "a100"}});
  open(runs_[0]);
  ASSERT_TRUE(imgui_.type(*app_, "run.tags", "a100, fast"));
  for (int i = 0; i < 3; ++i) imgui_.frame(*app_);
  EXPECT_EQ(app_->workspace().undoable, "");
  ASSERT_TRUE(imgui_.type(*app_, "run.tags", "a100, fast, new"));
  for (int i = 0; i < 3; ++i) imgui_.frame(*app_);
  EXPECT_EQ(app_->workspace().undoable, "Changed the tags of first");
}

TEST_F(Note, IsKeptWithItsRunWhenAnotherIsShown) {
  open(runs_[0]);
  type("run.note", "of the first");
  app_->workspace().selection.shown_run = runs_[1];
  for (int i = 0; i < 3; ++i) imgui_.frame(*app_);
  EXPECT_EQ(kept(runs_[0]).note, "of the first");
  EXPECT_EQ(kept(runs_[1]).note, "");
}

TEST_F(Note, IsKeptWhenAnotherViewIsShownOrTheWindowCloses) {
  open(runs_[0]);
  type("run.note", "left by a key");
  app_->show("history");
  for (int i = 0; i < 2; ++i) imgui_.frame(*app_);
  EXPECT_EQ(kept(runs_[0]).note, "left by a key");
  open(runs_[1]);
  type("run.note", "the window goes");
  app_->close();
  EXPECT_EQ(kept(runs_[1]).note, "the window goes");
}

TEST_F(Note, ALongOneIsNotCutWhenTagsChange) {
  const std::string note(20'000, 'x');
  store_.curation().set(runs_[0], {.note = note});
  open(runs_[0]);
  type("run.tags", "night");
  imgui_.press(*app_, ImGuiKey_Enter);
  EXPECT_EQ(kept(runs_[0]).tags, std::vector<std::string>{"night"});
  EXPECT_EQ(kept(runs_[0]).note, note);
}

}  // namespace
}  // namespace stepladder
