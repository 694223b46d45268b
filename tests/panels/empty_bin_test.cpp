// Emptying the bin from the palette asks first.
#include <gtest/gtest.h>

#include "app/runs/bin.h"
#include "tests/engine/files/saved_checkpoint.h"
#include "tests/panels/headless.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

class EmptyBinTest : public testing::Test {
 protected:
  EmptyBinTest() {
    run_ = store_.insert_finished({.name = "run"}, {});
    store_.insert_finished({.name = "other"}, {});
    save_test_checkpoint(owner_of_run(), 10, 2000);
    app_.emplace(store_, nullptr, DesktopSettings{.panels = {"history"}});
    app_->workspace().selection.runs = {run_};
    imgui_.frame(*app_);
  }
  CheckpointOwner owner_of_run() { return checkpoint_owner(store_.file(), store_.existing_run(run_)); }
  std::filesystem::path folder() const {
    return folder_.path() / "runs.db.checkpoints" / ("run-" + std::to_string(run_));
  }
  // Enter takes the first match.
  void palette(const std::string& typed) {
    imgui_.press(*app_, ImGuiKey_K, true);
    choose(typed);
  }
  void choose(const std::string& typed) {
    ImGui::GetIO().AddInputCharactersUTF8(typed.c_str());
    for (int i = 0; i < 3; ++i) imgui_.frame(*app_);
    imgui_.press(*app_, ImGuiKey_Enter);
  }
  bool says(const std::string& text) {
    for (const Message& message : app_->messages())
      if (message.text.find(text) != std::string::npos) return true;
    return false;
  }

  TemporaryFolder folder_;
  RunStore store_ = RunStore::open(folder_ / "runs.db");
  Headless imgui_;
  std::optional<DesktopApp> app_;
  RunId run_ = 0;
};

TEST_F(EmptyBinTest, TheBinIsOpenedAndARunRestoredAndThatUndone) {
  ImGui::GetIO().DisplaySize = ImVec2(1600, 900);
  ASSERT_TRUE(imgui_.click(*app_, "history.delete"));
  ASSERT_TRUE(imgui_.click(*app_, "history.bin"));
  ASSERT_TRUE(imgui_.click(*app_, "history.restore." + std::to_string(run_)));
  EXPECT_TRUE(app_->workspace().find(run_));
  EXPECT_TRUE(runs_in_bin(store_).empty());
  imgui_.press(*app_, ImGuiKey_Escape);
  imgui_.press(*app_, ImGuiKey_Z, true);
  EXPECT_FALSE(app_->workspace().find(run_));
}

TEST_F(EmptyBinTest, AsksFirstAndSaysWhatItFreed) {
  palette("empty bin");
  EXPECT_TRUE(says("The bin is empty"));
  ASSERT_TRUE(imgui_.click(*app_, "history.delete"));
  ASSERT_EQ(runs_in_bin(store_).size(), 1u);
  palette("empty bin");
  EXPECT_EQ(runs_in_bin(store_).size(), 1u) << "it only asks";
  choose("");  // the first answer leaves it
  EXPECT_EQ(runs_in_bin(store_).size(), 1u);
  imgui_.press(*app_, ImGuiKey_Escape);
  EXPECT_TRUE(std::filesystem::exists(folder() / checkpoint_name(10)));

  palette("empty bin");
  choose("Permanently delete");
  ASSERT_TRUE(imgui_.frames_until(*app_, [&] { return says("Permanently deleted"); }));
  EXPECT_TRUE(runs_in_bin(store_).empty());
  EXPECT_FALSE(store_.run(run_));
  EXPECT_FALSE(std::filesystem::exists(folder()));
  EXPECT_TRUE(says("Permanently deleted 1 run, 2."));
  EXPECT_EQ(app_->workspace().undoable, "") << "nothing can be undone";
  EXPECT_EQ(store_.runs().size(), 1u);
}

TEST_F(EmptyBinTest, WhatWasDeletedComesBackWithItsCheckpoints) {
  ASSERT_TRUE(imgui_.click(*app_, "history.delete"));
  imgui_.press(*app_, ImGuiKey_Z, true);
  EXPECT_EQ(store_.runs().size(), 2u);
  EXPECT_EQ(run_checkpoints(owner_of_run()).size(), 1u);
}

TEST_F(EmptyBinTest, UndoAfterAnotherProgramHasEmptiedItIsASentence) {
  ASSERT_TRUE(imgui_.click(*app_, "history.delete"));
  EXPECT_EQ(empty_bin(store_, unix_now() + 1).runs.size(), 1u);
  imgui_.press(*app_, ImGuiKey_Z, true);
  EXPECT_TRUE(says("a run was deleted permanently"));
}

}  // namespace
}  // namespace stepladder
