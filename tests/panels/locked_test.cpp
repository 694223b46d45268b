// Another program holds the project's file, or the disk is full, while the user changes something.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "app/desktop/commands/curation_commands.h"
#include "tests/panels/headless.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

class LockedProject : public testing::Test {
 protected:
  LockedProject() {
    for (const char* name : {"alpha", "beta"}) runs_.push_back(store_.insert_finished({.name = name}, {}));
    app_.emplace(store_, nullptr, DesktopSettings{.panels = {"history"}, .views = {{"run", "Note"}}});
    app_->workspace().selection.runs = {runs_[0]};
    for (int i = 0; i < 3; ++i) imgui_.frame(*app_);
  }
  void rename(const std::string& name) {
    imgui_.press(*app_, ImGuiKey_F2);
    imgui_.press(*app_, ImGuiKey_A, true);
    ImGui::GetIO().AddInputCharactersUTF8(name.c_str());
    for (int i = 0; i < 3; ++i) imgui_.frame(*app_);
    imgui_.press(*app_, ImGuiKey_Enter);
  }
  bool says_that_it_waits() {
    ui_test_anchors::keep();
    for (int i = 0; i < 3; ++i) imgui_.frame(*app_);
    return ui_test_anchors::find("message.waiting").has_value();
  }
  std::string name(std::size_t run) { return other_.run(runs_[run])->name; }

  TemporaryFolder folder_;
  RunStore store_ = RunStore::open(folder_ / "runs.db");
  RunStore other_ = RunStore::open(folder_ / "runs.db");
  std::vector<RunId> runs_;
  Headless imgui_;
  std::optional<DesktopApp> app_;
};

TEST_F(LockedProject, ChangesWaitInTheirOrderAndNoneIsLost) {
  other_.in_one_transaction([&] {
    other_.rename_run(runs_[1], "held");  // the lock
    rename("first");
    EXPECT_TRUE(says_that_it_waits());
    rename("second");
    EXPECT_TRUE(app_->messages().empty()) << app_->messages().front().text;
    EXPECT_EQ(name(0), "alpha");
  });
  ASSERT_TRUE(imgui_.frames_until(*app_, [&] { return name(0) == "second"; }));
  EXPECT_FALSE(says_that_it_waits());
  EXPECT_EQ(app_->workspace().find(runs_[0])->run.name, "second");
  imgui_.press(*app_, ImGuiKey_Z, true);
  EXPECT_EQ(name(0), "first");
}

TEST_F(LockedProject, ChangesOfOneRunThatWaitDoNotUndoEachOther) {
  ImGui::GetIO().DisplaySize.y = 1400;  // so that the fields aren't under the sentence about the lock
  app_->show("run");
  app_->workspace().selection.shown_run = runs_[0];
  for (int i = 0; i < 3; ++i) imgui_.frame(*app_);
  other_.in_one_transaction([&] {
    other_.curation().set(runs_[0], {.archived = true});  // the lock
    ASSERT_TRUE(imgui_.type(*app_, "run.tags", "night, good"));
    ASSERT_TRUE(imgui_.click(*app_, "run.pin"));
    ASSERT_TRUE(imgui_.click(*app_, "run.note"));
    ImGui::GetIO().AddInputCharactersUTF8("a note");
    for (int i = 0; i < 3; ++i) imgui_.frame(*app_);
    imgui_.press(*app_, ImGuiKey_Escape);
    EXPECT_TRUE(app_->messages().empty()) << app_->messages().front().text;
    EXPECT_TRUE(other_.curation().of(runs_[0]).tags.empty());
  });
  ASSERT_TRUE(imgui_.frames_until(*app_, [&] { return !other_.curation().of(runs_[0]).note.empty(); }));
  Curation stored = other_.curation().of(runs_[0]);
  EXPECT_EQ(stored.tags, (std::vector<std::string>{"night", "good"}));
  EXPECT_EQ(stored.note, "a note");
  EXPECT_TRUE(stored.pinned);
  EXPECT_TRUE(stored.archived) << "by the other program";

  other_.curation().change(runs_[0], {.added_tags = {"later"}});
  for (int undone = 0; undone < 3; ++undone) imgui_.press(*app_, ImGuiKey_Z, true);
  stored = other_.curation().of(runs_[0]);
  EXPECT_EQ(stored.tags, std::vector<std::string>{"later"});
  EXPECT_EQ(stored.note, "");
  EXPECT_FALSE(stored.pinned);
  EXPECT_TRUE(stored.archived);
}

TEST_F(LockedProject, AChangeThatAFullDiskRefusesIsStoredLater) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit none{.rlim_cur = 1, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  rename("first");
  const bool waits = says_that_it_waits();
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_TRUE(waits);
  EXPECT_TRUE(app_->messages().empty()) << app_->messages().front().text;
  EXPECT_EQ(name(0), "alpha");
  EXPECT_TRUE(imgui_.frames_until(*app_, [&] { return name(0) == "first"; }));
}

TEST_F(LockedProject, AnUndoThatMeetsALockIsDoneLater) {
  rename("new");
  ASSERT_EQ(name(0), "new");
  other_.in_one_transaction([&] {
    other_.rename_run(runs_[1], "held");
    imgui_.press(*app_, ImGuiKey_Z, true);
    EXPECT_EQ(name(0), "new");
  });
  EXPECT_TRUE(imgui_.frames_until(*app_, [&] { return name(0) == "alpha"; }));
}

TEST_F(LockedProject, WhatWaitsIsStoredBeforeTheWindowCloses) {
  other_.in_one_transaction([&] {
    other_.rename_run(runs_[1], "held");
    rename("late");
  });
  app_->close();
  EXPECT_EQ(name(0), "late");
}

}  // namespace
}  // namespace stepladder
