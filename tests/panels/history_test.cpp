// The History view: actions on the selection, and columns that don't fit.
#include <gtest/gtest.h>

#include "storage/database/curation.h"
#include "tests/panels/headless.h"

namespace stepladder {
namespace {

class HistoryView : public testing::Test {
 protected:
  HistoryView() {
    for (const char* name : {"alpha", "beta", "gamma"})
      runs_.push_back(store_.insert_finished({.name = name, .created_at = 1}, {}));
  }
  void open(float width) {
    app_.emplace(store_, nullptr, DesktopSettings{.panels = {"history"}});
    app_->workspace().selected_runs = {runs_.begin(), runs_.end()};
    ImGui::GetIO().DisplaySize = ImVec2(width, 900);
    imgui_.frame(*app_);
  }
  bool shows(const std::string& anchor) {
    ui_test_anchors::keep();
    for (int i = 0; i < 4; ++i) imgui_.frame(*app_);
    return ui_test_anchors::find(anchor).has_value();
  }
  std::vector<std::string> tags(std::size_t run) { return app_->workspace().find(runs_[run])->curation.tags; }
  void add_tags(const std::string& words) {
    ASSERT_TRUE(imgui_.click(*app_, "history.tag"));
    ASSERT_TRUE(imgui_.type(*app_, "history.tag.field", words));
  }
  std::size_t in_bin() { return 3 - store_.runs().size(); }

  RunStore store_ = RunStore::in_memory();
  std::vector<RunId> runs_;
  Headless imgui_;
  std::optional<DesktopApp> app_;
};

TEST_F(HistoryView, SeveralTagsAtOnceAreAllKeptAndUndoneTogether) {
  open(1600);
  add_tags("night, good");
  for (std::size_t run = 0; run < 3; ++run) EXPECT_EQ(tags(run), (std::vector<std::string>{"night", "good"}));
  EXPECT_EQ(app_->workspace().undoable, "Added tags night, good to 3 runs");
  add_tags("good, third");
  EXPECT_EQ(tags(0), (std::vector<std::string>{"night", "third"})) << "all had 'good', so it is removed";
  imgui_.press(*app_, ImGuiKey_Z, true);
  EXPECT_EQ(tags(2), (std::vector<std::string>{"night", "good"}));
  imgui_.press(*app_, ImGuiKey_Z, true);
  EXPECT_TRUE(tags(0).empty());
}

TEST_F(HistoryView, ActionsLeaveSelectedRunsAloneThatTheFilterHides) {
  open(1600);
  EXPECT_FALSE(shows("history.hidden"));
  ASSERT_TRUE(imgui_.type(*app_, "history.filter", "beta"));
  EXPECT_TRUE(shows("history.hidden"));
  ASSERT_TRUE(imgui_.click(*app_, "history.pin"));
  EXPECT_TRUE(app_->workspace().find(runs_[1])->curation.pinned);
  EXPECT_FALSE(app_->workspace().find(runs_[0])->curation.pinned);
  add_tags("only");
  EXPECT_TRUE(tags(0).empty());
  ASSERT_TRUE(imgui_.click(*app_, "history.delete"));
  EXPECT_EQ(in_bin(), 1u);
  EXPECT_EQ(app_->workspace().find(runs_[1]), nullptr);
  ASSERT_TRUE(imgui_.click(*app_, "history.delete"));
  EXPECT_EQ(in_bin(), 1u) << "the rest of the selection is hidden";
  EXPECT_EQ(app_->workspace().selected_runs.size(), 2u);
}

TEST_F(HistoryView, TheKeyDeleteSparesHiddenRunsToo) {
  open(1600);
  ASSERT_TRUE(imgui_.type(*app_, "history.filter", "gamma"));
  ASSERT_TRUE(imgui_.click(*app_, "history.metric.0"));  // takes the focus from the field
  imgui_.press(*app_, ImGuiKey_Delete);
  EXPECT_EQ(in_bin(), 1u);
  EXPECT_EQ(app_->workspace().find(runs_[2]), nullptr);
}

TEST_F(HistoryView, ANarrowTableSaysHowManyColumnsDoNotFitUntilTheUserChooses) {
  open(1900);
  EXPECT_FALSE(shows("history.left_out"));
  open(900);
  EXPECT_TRUE(shows("history.left_out"));
  ASSERT_TRUE(imgui_.click(*app_, "history.columns"));
  ASSERT_TRUE(imgui_.click(*app_, "history.column.precision"));
  EXPECT_FALSE(shows("history.left_out")) << "the table has every chosen column and scrolls";
}

}  // namespace
}  // namespace stepladder
