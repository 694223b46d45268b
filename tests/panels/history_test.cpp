// The History view: actions on the selection, and columns that don't fit.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "app/desktop/theme.h"
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
    app_->workspace().selection.runs = {runs_.begin(), runs_.end()};
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

TEST_F(HistoryView, AKeyLeadsToTheFilter) {
  open(1600);
  ASSERT_TRUE(shows("history.filter"));
  imgui_.press(*app_, ImGuiKey_F, true);
  ImGui::GetIO().AddInputCharactersUTF8("alpha");
  imgui_.frames(*app_);
  EXPECT_TRUE(shows("history.head.1 of 3 runs match the filter,"));
  ASSERT_TRUE(imgui_.click(*app_, "history.run." + std::to_string(runs_[0])));
  imgui_.press(*app_, ImGuiKey_Tab);
  imgui_.press(*app_, ImGuiKey_A, true);  // else it would go on after what the field has
  ImGui::GetIO().AddInputCharactersUTF8("beta");
  imgui_.frames(*app_);
  EXPECT_TRUE(shows("history.head.1 of 3 runs match the filter,"));
  EXPECT_TRUE(shows("history.run." + std::to_string(runs_[1]))) << "Tab leads from a row to the filter";
}

TEST_F(HistoryView, ADefaultColumnWhoseTextSaysNothingIsNotShown) {
  store_ = RunStore::in_memory();
  runs_.clear();
  for (const char* stage : {"a", "b"})
    store_.insert_finished({.name = std::string("log-") + stage, .stage = stage, .created_at = 1, .hardware = "one"},
                           {});
  open(2000);
  EXPECT_TRUE(shows("history.head.status"));
  EXPECT_FALSE(shows("history.head.stage")) << "it repeats the end of the names";
  EXPECT_FALSE(shows("history.head.hardware")) << "all have the same";
  store_.insert_finished({.name = "third", .stage = "tf32", .created_at = 1, .hardware = "other"}, {});
  open(2000);
  EXPECT_TRUE(shows("history.head.stage"));
  EXPECT_TRUE(shows("history.head.hardware"));
}

// A100, GPT-2 124M: 8,192 tokens in a millisecond are 20 times the card's peak. The last step took longer.
RunId insert_impossible(RunStore& store, double dt_ms = 1) {
  std::vector<StepRecord> steps;
  for (std::int64_t step = 1; step <= 20; ++step)
    steps.push_back({.step = step,
                     .loss = 3,
                     .dt_ms = step == 20 ? 4 * dt_ms : dt_ms,
                     .tokens = 8192,
                     .at = 1000 + static_cast<double>(step)});
  return store.insert_finished({.name = "too fast",
                                .status = RunStatus::finished,
                                .source = "launched",
                                .created_at = 2,
                                .started_at = 1000,
                                .tokens_per_step = 8192,
                                .params = 124'439'808,
                                .device = "cuda",
                                .hardware = "NVIDIA A100-SXM4-40GB",
                                .precision = "bf16"},
                               steps);
}

TEST_F(HistoryView, AnImpossibleSpeedIsMarkedAndExportedAsSuch) {
  const std::string id = std::to_string(insert_impossible(store_));
  open(1600);
  EXPECT_TRUE(shows("history.trust." + id + ".impossible"));
  for (const char* column : {"dt_ms_median", "tokens_per_s"})
    EXPECT_TRUE(shows("history.doubted." + id + "." + column)) << column;
  EXPECT_FALSE(shows("history.doubted." + id + ".loss_last"));
  ASSERT_TRUE(imgui_.click(*app_, "history.export"));
  ASSERT_TRUE(imgui_.click(*app_, "history.export.copy_csv"));
  const std::string copied = ImGui::GetClipboardText();
  EXPECT_NE(copied.find(",trust\n"), std::string::npos) << copied;
  EXPECT_NE(copied.find(",impossible\n"), std::string::npos) << copied;
}

// Run and Live show the medians of a run that is over, in grey if they can't be relied on.
TEST_F(HistoryView, AnImpossibleSpeedIsMarkedInRunAndLiveToo) {
  const RunId id = insert_impossible(store_);
  for (const char* panel : {"run", "live"}) {
    app_.emplace(store_, nullptr, DesktopSettings{.panels = {panel}});
    app_->workspace().selection.shown_run = id;
    ImGui::GetIO().DisplaySize = ImVec2(1600, 900);
    EXPECT_TRUE(shows("doubted.tokens/s")) << panel;
    EXPECT_TRUE(shows("doubted.step time")) << panel;
    EXPECT_EQ(shows("live.tokens_per_s.8.19 M"), std::string(panel) == "live") << "not the last step's";
  }
}

TEST_F(HistoryView, MfuHasImpossibleRunsBelowTheOthers) {
  const std::string sound = std::to_string(insert_impossible(store_, 100));
  const std::string impossible = std::to_string(insert_impossible(store_));
  app_.emplace(store_, nullptr, DesktopSettings{.panels = {"mfu"}});
  ImGui::GetIO().DisplaySize = ImVec2(1600, 900);
  ASSERT_TRUE(shows("mfu.row.0"));
  ASSERT_TRUE(imgui_.type(*app_, "mfu.filter", "yours"));
  ASSERT_TRUE(shows("mfu.run." + impossible));
  EXPECT_LT(ui_test_anchors::find("mfu.run." + sound)->y0, ui_test_anchors::find("mfu.run." + impossible)->y0);
}

TEST_F(HistoryView, MfuHidesColumnsWithoutAValue) {
  insert_impossible(store_, 100);
  app_.emplace(store_, nullptr, DesktopSettings{.panels = {"mfu"}});
  ImGui::GetIO().DisplaySize = ImVec2(2400, 1200);
  EXPECT_TRUE(shows("mfu.column.published"));
  ASSERT_TRUE(imgui_.type(*app_, "mfu.filter", "yours"));
  EXPECT_FALSE(shows("mfu.column.published")) << "only published rows have it";
  EXPECT_FALSE(shows("mfu.column.diff., pp"));
  EXPECT_TRUE(shows("mfu.column.tokens/s"));
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
  EXPECT_EQ(app_->workspace().selection.runs.size(), 2u);
}

TEST_F(HistoryView, TheKeyDeleteSparesHiddenRunsToo) {
  open(1600);
  ASSERT_TRUE(imgui_.type(*app_, "history.filter", "gamma"));
  ASSERT_TRUE(imgui_.click(*app_, "history.metric.0"));  // takes the focus from the field
  imgui_.press(*app_, ImGuiKey_Delete);
  EXPECT_EQ(in_bin(), 1u);
  EXPECT_EQ(app_->workspace().find(runs_[2]), nullptr);
}

TEST_F(HistoryView, AfterTheKeyDeleteTheNextRowIsNextToTheCursor) {
  open(1600);
  app_->workspace().selection.runs.clear();
  for (int i = 0; i < 2; ++i) imgui_.press(*app_, ImGuiKey_DownArrow);
  const RunId second = *app_->workspace().selection.runs.begin();
  imgui_.press(*app_, ImGuiKey_DownArrow);
  const RunId third = *app_->workspace().selection.runs.begin();
  imgui_.press(*app_, ImGuiKey_UpArrow);
  ASSERT_EQ(*app_->workspace().selection.runs.begin(), second);
  imgui_.press(*app_, ImGuiKey_Delete);
  ASSERT_EQ(in_bin(), 1u);
  EXPECT_TRUE(app_->workspace().selection.runs.empty());
  imgui_.press(*app_, ImGuiKey_DownArrow);
  EXPECT_EQ(app_->workspace().selection.runs, (std::set<RunId>{third})) << "not the first row";
}

TEST_F(HistoryView, TheArrowKeysStillGoThroughTheRunsAfterEscape) {
  open(1600);
  app_->workspace().selection.runs.clear();
  imgui_.press(*app_, ImGuiKey_DownArrow);
  const auto first = app_->workspace().selection.runs;
  ASSERT_EQ(first.size(), 1u);
  for (int i = 0; i < 3; ++i) imgui_.press(*app_, ImGuiKey_Escape);
  imgui_.press(*app_, ImGuiKey_DownArrow);
  ASSERT_EQ(app_->workspace().selection.runs.size(), 1u);
  EXPECT_NE(app_->workspace().selection.runs, first);
}

TEST_F(HistoryView, OfRunsThatAreAllInTheBinTheBinIsThere) {
  open(1600);
  ASSERT_TRUE(imgui_.click(*app_, "history.delete"));
  ASSERT_EQ(in_bin(), 3u);
  ASSERT_TRUE(imgui_.click(*app_, "history.bin"));
  ASSERT_TRUE(imgui_.click(*app_, "history.restore_all"));
  EXPECT_EQ(in_bin(), 0u);
}

TEST_F(HistoryView, TheFiltersCountIsInTheHead) {
  open(1600);
  EXPECT_TRUE(shows("history.head.3 runs"));
  ASSERT_TRUE(imgui_.type(*app_, "history.filter", "beta"));
  EXPECT_TRUE(shows("history.head.1 of 3 runs match the filter,"));
}

TEST_F(HistoryView, EscapeClosesAPopupAlsoFromItsField) {
  open(1600);
  for (const auto& [button, field] :
       {std::pair("history.columns", "history.column_search"), std::pair("history.tag", "history.tag.field")}) {
    ASSERT_TRUE(imgui_.click(*app_, button));
    ASSERT_TRUE(shows(field));
    imgui_.press(*app_, ImGuiKey_Escape);
    EXPECT_FALSE(shows(field)) << field;
  }
}

TEST_F(HistoryView, KeysGoThroughTheRunsSelectAndOpenThem) {
  for (int i = 0; i < 80; ++i)
    runs_.push_back(store_.insert_finished({.name = "more", .created_at = 2 + static_cast<double>(i)}, {}));
  open(1600);
  Selection& selection = app_->workspace().selection;
  selection.runs.clear();
  const auto newest = runs_.rbegin();  // the table's order
  imgui_.press(*app_, ImGuiKey_DownArrow);
  EXPECT_EQ(selection.runs, std::set<RunId>{newest[0]});
  EXPECT_TRUE(shows("history.cursor." + std::to_string(newest[0])));
  imgui_.press(*app_, ImGuiKey_DownArrow);
  EXPECT_EQ(selection.runs, std::set<RunId>{newest[1]}) << "the selection follows";
  EXPECT_EQ(selection.shown_run, newest[1]);
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Shift, true);
  imgui_.press(*app_, ImGuiKey_DownArrow);
  imgui_.press(*app_, ImGuiKey_DownArrow);
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Shift, false);
  imgui_.frame(*app_);
  EXPECT_EQ(selection.runs, (std::set<RunId>{newest[1], newest[2], newest[3]}));
  imgui_.press(*app_, ImGuiKey_End);
  EXPECT_EQ(selection.runs.size(), 3u) << "a selection of several isn't lost";
  EXPECT_TRUE(shows("history.cursor." + std::to_string(selection.shown_run))) << "the table scrolls to it";
  imgui_.press(*app_, ImGuiKey_Space);
  EXPECT_EQ(selection.runs.size(), 4u);
  imgui_.press(*app_, ImGuiKey_Space);
  EXPECT_EQ(selection.runs.size(), 3u);
  imgui_.press(*app_, ImGuiKey_Home);
  imgui_.press(*app_, ImGuiKey_UpArrow);
  EXPECT_TRUE(shows("history.cursor." + std::to_string(newest[0])));
  imgui_.press(*app_, ImGuiKey_Enter);
  EXPECT_EQ(selection.shown_run, newest[0]);
  EXPECT_FALSE(shows("history.filter")) << "the run is shown instead";
}

TEST_F(HistoryView, KeysPassOverTheHeadsOfGroups) {
  const RunId last = store_.insert_finished({.name = "delta", .created_at = 0.5, .hardware = "B200"}, {});
  app_.emplace(store_, nullptr, DesktopSettings{.panels = {"history"}, .views = {{"history", R"x({"group": 4})x"}}});
  for (int i = 0; i < 4; ++i) imgui_.frame(*app_);
  const Selection& selection = app_->workspace().selection;
  imgui_.press(*app_, ImGuiKey_Home);
  EXPECT_EQ(selection.runs, std::set<RunId>{last}) << "B200 comes before unknown hardware";
  imgui_.press(*app_, ImGuiKey_DownArrow);
  EXPECT_EQ(selection.runs.size(), 1u);
  EXPECT_FALSE(selection.runs.contains(last));
  for (int i = 0; i < 2; ++i) imgui_.press(*app_, ImGuiKey_UpArrow);
  EXPECT_EQ(selection.runs, std::set<RunId>{last});
}

TEST_F(HistoryView, ATagIsInSightHoweverNarrowTheTable) {
  open(900);
  const auto widths = [&] { return shows("history.head.tags"); };
  EXPECT_FALSE(widths());
  add_tags("night");
  EXPECT_TRUE(widths());
}

TEST_F(HistoryView, TheTableHasHalfOfTheRoomBesideCurvesAndTraces) {
  open(1280);
  ImGui::GetIO().DisplaySize = ImVec2(1280, 720);
  app_->workspace().traces.assign(5, StoredTrace{.name = "step"});
  ASSERT_TRUE(shows("history.table"));
  const auto table = ui_test_anchors::find("history.table");
  EXPECT_GT(table->y1 - table->y0, (720 - table->y0) / 2 - 20);
  EXPECT_LT(ui_test_anchors::find("history.tag")->y1, 720 - 100) << "and the curves have room for a chart";
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

TEST_F(HistoryView, EnterAfterAClickOpensTheRun) {
  open(1600);
  ASSERT_TRUE(imgui_.click(*app_, "history.run." + std::to_string(runs_[1])));
  imgui_.press(*app_, ImGuiKey_Enter);
  EXPECT_EQ(app_->workspace().selection.shown_run, runs_[1]);
  EXPECT_FALSE(shows("history.filter")) << "the run is shown instead";
}

TEST_F(HistoryView, AClickSelectsOneRunAndCtrlShiftOrTheBoxMore) {
  open(1600);
  const std::set<RunId>& selected = app_->workspace().selection.runs;
  const auto row = [&](std::size_t run) { return "history.run." + std::to_string(runs_[run]); };
  ASSERT_TRUE(imgui_.click(*app_, row(0)));
  EXPECT_EQ(selected, std::set<RunId>{runs_[0]});
  EXPECT_EQ(app_->workspace().selection.shown_run, runs_[0]);
  ASSERT_TRUE(imgui_.click(*app_, row(2)));
  EXPECT_EQ(selected, std::set<RunId>{runs_[2]}) << "alone";
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Ctrl, true);
  ASSERT_TRUE(imgui_.click(*app_, row(0)));
  EXPECT_EQ(selected, (std::set<RunId>{runs_[0], runs_[2]}));
  ASSERT_TRUE(imgui_.click(*app_, row(2)));
  EXPECT_EQ(selected, std::set<RunId>{runs_[0]});
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Ctrl, false);
  ASSERT_TRUE(imgui_.click(*app_, "history.box." + std::to_string(runs_[1])));
  EXPECT_EQ(selected, (std::set<RunId>{runs_[0], runs_[1]}));
  ASSERT_TRUE(imgui_.click(*app_, row(0)));
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Shift, true);
  ASSERT_TRUE(imgui_.click(*app_, row(2)));
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Shift, false);
  EXPECT_EQ(selected.size(), 3u) << "all between them";
}

TEST_F(HistoryView, ALineKeepsItsColourWhateverElseIsSelected) {
  open(1600);
  const Workspace& workspace = app_->workspace();
  const int beta = workspace.colours_of({runs_[1]}).front();
  const std::vector<int> both = workspace.colours_of({runs_[0], runs_[1]});
  EXPECT_EQ(both[1], beta);
  EXPECT_NE(both[0], beta);
  EXPECT_EQ(workspace.colours_of({runs_[0]}).front(), both[0]) << "also when the other one has gone";
  EXPECT_EQ(workspace.colours_of({runs_[0], runs_[1], runs_[2]})[0], both[0]);
}

TEST_F(HistoryView, FiftyLinesLookDifferentAndNoneAsTheBaseline) {
  for (int i = 0; i < 47; ++i)
    runs_.push_back(store_.insert_finished({.name = "run " + std::to_string(i), .created_at = 1}, {}));
  open(1600);
  std::set<std::pair<float, int>> looks;  // hue and dashes
  const auto hue = [](int number) { return rung_colour(number).x + 10 * rung_colour(number).y; };
  int like_baseline = 0;
  for (const int number : app_->workspace().colours_of(runs_)) {
    looks.emplace(hue(number), rung_dash(number));
    like_baseline += hue(number) == hue(0) ? 1 : 0;
  }
  EXPECT_EQ(looks.size(), 50u);
  EXPECT_EQ(like_baseline, 1);
}

// A sweep over two values, whose runs were made in no order.
class HistoryOfASweep : public HistoryView {
 protected:
  HistoryOfASweep() {
    const std::vector<std::pair<std::string, std::string>> values{
        {"0.1", "16"}, {"0.001", "128"}, {"0.01", "8"}, {"0.001", "8"}};
    for (const auto& [lr, batch] : values)
      sweep_.push_back(
          store_.insert_finished({.name = "lr" + lr,
                                  .status = RunStatus::finished,
                                  .created_at = 2,
                                  .recipe = R"({"batch":)" + batch + R"(,"lr":)" + lr + R"(,"seed":)" + batch + "}"},
                                 std::vector<StepRecord>{{.step = 1, .loss = 3, .dt_ms = 10},
                                                         {.step = 2, .loss = lr == "0.1" ? 2.5 : 2, .dt_ms = 10}}));
  }
  void open_with(const std::string& remembered) {
    app_.emplace(store_, nullptr, DesktopSettings{.panels = {"history"}, .views = {{"history", remembered}}});
    ImGui::GetIO().DisplaySize = ImVec2(1900, 900);
    for (int i = 0; i < 4; ++i) imgui_.frame(*app_);
  }
  float top_of(std::size_t run) {
    const auto row = ui_test_anchors::find("history.run." + std::to_string(sweep_[run]));
    return row ? row->y0 : 0;
  }

  std::vector<RunId> sweep_;
};

TEST_F(HistoryOfASweep, GroupsAreSortedByTheirValueAndSayMeanAndRange) {
  open_with(R"x({"group_value": "lr"})x");
  ASSERT_TRUE(shows("history.group_head.2, loss 2.0000"));
  EXPECT_TRUE(shows("history.group_head.1, loss 2.5000"));
  EXPECT_LT(top_of(1), top_of(2)) << "0.001 before 0.01";
  EXPECT_LT(top_of(2), top_of(0)) << "0.01 before 0.1";
  EXPECT_EQ(nlohmann::json::parse(app_->settings().views.at("history"))["group_value"], nlohmann::json("lr"));
}

TEST_F(HistoryOfASweep, ValuesThatDifferAreColumnsByThemselves) {
  open_with("{}");
  EXPECT_TRUE(shows("history.head.recipe.lr"));
  EXPECT_TRUE(shows("history.head.recipe.batch"));
  EXPECT_FALSE(shows("history.head.recipe.seed"));
  EXPECT_FALSE(shows("history.head.val_loss_last")) << "no run has one";
  EXPECT_FALSE(shows("history.head.hardware"));
  EXPECT_LT(ui_test_anchors::find("history.head.loss_last")->x0,
            ui_test_anchors::find("history.head.recipe.batch")->x0);
  ASSERT_TRUE(imgui_.type(*app_, "history.filter", "batch=16"));
  EXPECT_FALSE(shows("history.head.recipe.lr")) << "one run has one value";
}

TEST_F(HistoryOfASweep, AnEqualColumnIsShownOnceAndValuesGiveWayToLosses) {
  for (const int lr : {3, 1})
    store_.insert_finished(
        {.name = "copy" + std::to_string(lr),
         .recipe = R"({"batch_size":)" + std::to_string(lr) + R"(,"block":)" + std::to_string(lr) + "}"},
        std::vector<StepRecord>{{.step = 1, .loss = 3, .val_loss = 3, .dt_ms = 10}});
  open_with("{}");
  EXPECT_TRUE(shows("history.head.recipe.batch_size"));
  EXPECT_FALSE(shows("history.head.recipe.block"));
  ImGui::GetIO().DisplaySize = ImVec2(1280, 720);
  for (int i = 0; i < 4; ++i) imgui_.frame(*app_);
  EXPECT_TRUE(shows("history.head.val_loss_last"));
  EXPECT_FALSE(shows("history.head.recipe.batch_size"));
}

TEST_F(HistoryOfASweep, TheOrderStaysWhenOtherColumnsAreShown) {
  open_with(R"x({"sorted_by": "loss_last", "ascending": true})x");
  ASSERT_TRUE(shows("history.head.created"));
  EXPECT_LT(top_of(1), top_of(0));
  ImGui::GetIO().DisplaySize = ImVec2(1100, 900);
  for (int i = 0; i < 4; ++i) imgui_.frame(*app_);
  ASSERT_FALSE(shows("history.head.created"));
  EXPECT_LT(top_of(1), top_of(0)) << "2.0 before 2.5";
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(imgui_.click(*app_, "history.head.loss_last"));
  for (int i = 0; i < 4; ++i) imgui_.frame(*app_);
  EXPECT_LT(top_of(0), top_of(1));
  ImGui::GetIO().DisplaySize = ImVec2(1900, 900);
  for (int i = 0; i < 4; ++i) imgui_.frame(*app_);
  EXPECT_LT(top_of(0), top_of(1)) << "not the order that this table had before";
}

TEST_F(HistoryOfASweep, AFiltersMistakeIsSaidWhole) {
  open_with("{}");
  ASSERT_TRUE(imgui_.type(*app_, "history.filter", "batsch=16"));
  EXPECT_TRUE(shows("history.filter_problem"));
}

TEST_F(HistoryOfASweep, WhileTheFilterCannotBeAppliedNothingIsListedOrActedOn) {
  open_with("{}");
  ASSERT_TRUE(imgui_.type(*app_, "history.filter", "batch=16"));
  ASSERT_TRUE(imgui_.type(*app_, "history.filter", "batch=16 batsch=16"));
  EXPECT_TRUE(shows("history.filter_problem"));
  for (const RunId run : sweep_) EXPECT_FALSE(shows("history.run." + std::to_string(run)));
  app_->workspace().selection.runs = {sweep_.front()};
  ASSERT_TRUE(imgui_.click(*app_, "history.table"));
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Ctrl, true);
  imgui_.press(*app_, ImGuiKey_A);
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Ctrl, false);
  EXPECT_EQ(app_->workspace().selection.runs, std::set<RunId>{});
  app_->workspace().selection.runs = {sweep_.front()};
  imgui_.press(*app_, ImGuiKey_Delete);
  for (int i = 0; i < 3; ++i) imgui_.frame(*app_);
  EXPECT_TRUE(app_->workspace().find(sweep_.front())) << "it isn't listed";
}

// Three rungs of a ladder: 100, 50 and 25 ms a step.
class HistoryOfALadder : public HistoryView {
 protected:
  HistoryOfALadder() {
    const LadderId ladder = store_.create_ladder({.name = "mine"});
    for (int rung = 0; rung < 3; ++rung) {
      std::vector<StepRecord> steps;
      for (std::int64_t step = 1; step <= 20; ++step)
        steps.push_back({.step = step, .loss = 3, .dt_ms = 100.0 / (1 << rung), .tokens = 100});
      rungs_.push_back(store_.insert_finished({.name = "rung " + std::to_string(rung),
                                               .ladder = ladder,
                                               .rung = rung,
                                               .status = RunStatus::finished,
                                               .tokens_per_step = 100},
                                              steps));
    }
  }
  bool lists(RunId run) { return shows("history.run." + std::to_string(run)); }

  std::vector<RunId> rungs_;
};

TEST_F(HistoryOfALadder, ARungHasItsColourBesideRepeatsOfTheBaseline) {
  const stepladder::Run base = store_.existing_run(rungs_[0]);
  const RunId again = store_.insert_finished(
      {.name = "again", .ladder = base.ladder, .rung = 0, .repeat = 1, .status = RunStatus::finished},
      std::vector<StepRecord>{{.step = 1, .loss = 3}});
  open(1600);
  EXPECT_EQ(app_->workspace().colours_of({again}).front(), 0);
  const std::vector<int> all = app_->workspace().colours_of({rungs_[0], again, rungs_[1], rungs_[2]});
  EXPECT_EQ((std::vector<int>{all[0], all[2], all[3]}), (std::vector<int>{0, 1, 2})) << "as in Launch and Ladder";
}

TEST_F(HistoryOfALadder, AFilterComparesTheFactor) {
  open(1600);
  ASSERT_TRUE(imgui_.type(*app_, "history.filter", "factor > 3"));
  EXPECT_TRUE(lists(rungs_[2]));
  EXPECT_FALSE(lists(rungs_[1]));
  EXPECT_FALSE(lists(runs_[0])) << "which has none";
}

TEST_F(HistoryOfALadder, DeletingABaselineSaysWhatFactorsAreAgainstThen) {
  open(1600);
  app_->workspace().selection.runs = {rungs_[1]};
  ASSERT_TRUE(imgui_.click(*app_, "history.delete"));
  EXPECT_EQ(app_->workspace().undoable, "Deleted rung 1");
  app_->workspace().selection.runs = {rungs_[0]};
  ASSERT_TRUE(imgui_.click(*app_, "history.delete"));
  EXPECT_EQ(app_->workspace().undoable, "Deleted rung 0; factors are now against rung 2");
}

TEST_F(HistoryOfALadder, AReadOnlyProjectSaysSoAndItsButtonsDoNothing) {
  open(1600);
  EXPECT_FALSE(shows("read_only"));
  app_->workspace().read_only = "the file may only be read";
  EXPECT_TRUE(shows("read_only"));
  ASSERT_TRUE(imgui_.click(*app_, "history.delete"));
  ASSERT_TRUE(imgui_.click(*app_, "history.metric.0"));
  imgui_.press(*app_, ImGuiKey_Delete);
  EXPECT_EQ(store_.runs().size(), 6u);
  EXPECT_TRUE(app_->messages().empty()) << "not a try that fails";
}

// Four runs: val/acc is 0.5, NaN, 0.25 and missing.
class HistoryOfMetrics : public HistoryView {
 protected:
  HistoryOfMetrics() {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    runs_.push_back(store_.insert_finished({.name = "delta", .created_at = 1}, {}));
    log(0, {{1, 0.125}, {1000, 0.5}});
    log(1, {{1, nan}});
    log(2, {{1000, 0.25}});
    store_.metrics().describe(runs_[0], {.name = "val/acc", .unit = "%", .direction = Direction::higher});
    for (const char* name : {"val/loss", "val/f1", "top 1, (%)"})
      store_.metrics().append(runs_[0], name, std::vector<MetricPoint>{{1, 2}});
  }
  void log(std::size_t run, const std::vector<MetricPoint>& points) {
    store_.metrics().append(runs_[run], "val/acc", points);
  }
  void open_with(const std::string& remembered) {
    app_.emplace(store_, nullptr, DesktopSettings{.panels = {"history"}, .views = {{"history", remembered}}});
    ImGui::GetIO().DisplaySize = ImVec2(1900, 900);
    for (int i = 0; i < 4; ++i) imgui_.frame(*app_);
  }
  // What the table shows, from top to bottom, through the clipboard.
  std::string copied() {
    ImGui::SetClipboardText("");
    EXPECT_TRUE(imgui_.click(*app_, "history.export"));
    EXPECT_TRUE(imgui_.click(*app_, "history.export.copy_csv"));
    return ImGui::GetClipboardText();
  }
  nlohmann::json kept() { return nlohmann::json::parse(app_->settings().views.at("history")); }
};

TEST_F(HistoryOfMetrics, AnotherProjectStartsWithoutThisOnesFilterAndResetRemovesIt) {
  open_with(R"x({"filter": "alpha", "group": 3})x");
  const std::string filter = kept()["filter"];
  EXPECT_EQ(filter, "alpha");
  ASSERT_TRUE(imgui_.click(*app_, "history.views"));
  ASSERT_TRUE(imgui_.click(*app_, "views.reset"));
  EXPECT_EQ(kept()["filter"], "");
  EXPECT_EQ(kept()["group"], nlohmann::json::parse("0"));
  DesktopSettings settings{.panels = {"history"}};
  settings.projects["/another.db"].views["history"] = R"x({"filter": "alpha"})x";
  app_.emplace(store_, nullptr, settings);
  imgui_.frame(*app_);
  EXPECT_EQ(kept()["filter"], "");
}

TEST_F(HistoryOfMetrics, F2RenamesTheCurrentOneOfSeveral) {
  open_with("{}");
  app_->workspace().selection.runs = {runs_[0], runs_[1]};
  app_->workspace().selection.shown_run = runs_[1];
  imgui_.press(*app_, ImGuiKey_F2);
  ImGui::GetIO().AddInputCharactersUTF8("renamed");
  for (int i = 0; i < 3; ++i) imgui_.frame(*app_);
  imgui_.press(*app_, ImGuiKey_Enter);
  EXPECT_TRUE(store_.run(runs_[1])->name.find("renamed") != std::string::npos) << store_.run(runs_[1])->name;
}

TEST_F(HistoryOfMetrics, AColumnIsSortedWithNaNAndWhatIsMissingLast) {
  open_with(R"x({"columns": ["last(val/acc)"], "sorted_by": "last(val/acc)", "ascending": true})x");
  EXPECT_EQ(copied(), "run,\"val/acc, %\"\ngamma,0.25\nalpha,0.5\nbeta,NaN\ndelta,\n");
  open_with(R"x({"columns": ["last(val/acc)"], "sorted_by": "last(val/acc)", "ascending": false
  })x");
  EXPECT_EQ(copied(), "run,\"val/acc, %\"\nalpha,0.5\ngamma,0.25\nbeta,NaN\ndelta,\n");
}

TEST_F(HistoryOfMetrics, EveryFigureIsShownAndComparedWithABaseline) {
  const LadderId ladder = store_.create_ladder({.name = "ladder"});
  for (const std::size_t run : {0u, 2u}) {
    stepladder::Run changed = *store_.run(runs_[run]);
    changed.ladder = ladder;
    changed.rung = static_cast<int>(run);
    store_.update_run(changed);
  }
  open_with(
      R"x({"columns": ["min(val/acc)", "max(val/acc)", "median(val/acc)", "at(val/acc, 1)", "last(val/acc) - baseline",
           "last(val/acc) / baseline", "nonsense", "max(\"top 1, (%)\")"], "filter": "status=finished val/acc<1",
           "sorted_by": "name", "ascending": true})x");
  EXPECT_EQ(
      copied(),
      "run,\"min val/acc, %\",\"max val/acc, %\",\"median val/acc, %\",\"val/acc at 1, %\",\"val/acc vs baseline, "
      "%\",val/acc factor,\"max top 1, (%)\"\n"
      "alpha,0.125,0.5,0.3125,0.125,0,1 x,2\n"
      "gamma,0.25,0.25,0.25,,-0.25,0.50 x,\n");
}

TEST_F(HistoryOfMetrics, ColumnsAreFoundByNameOrPattern) {
  open_with(R"x({"columns": ["stage"]})x");
  ASSERT_TRUE(imgui_.click(*app_, "history.columns"));
  ASSERT_TRUE(imgui_.click(*app_, "history.figure.min"));
  ASSERT_TRUE(imgui_.type(*app_, "history.column_search", "val/*"));
  EXPECT_EQ(kept()["columns"], nlohmann::json({"min(val/acc)", "min(val/f1)", "min(val/loss)", "stage"}));
  ASSERT_TRUE(imgui_.click(*app_, "history.column.min(val/f1)"));
  ASSERT_TRUE(imgui_.click(*app_, "history.shows.1"));
  ASSERT_TRUE(imgui_.click(*app_, "history.column.min(val/acc) - baseline"));
  EXPECT_EQ(kept()["columns"], nlohmann::json({"min(val/acc)", "min(val/loss)", "min(val/acc) - baseline", "stage"}));
  ASSERT_TRUE(imgui_.click(*app_, "history.figure.at"));
  EXPECT_FALSE(shows("history.column.at(val/acc, 0) - baseline")) << "which step?";
  ASSERT_TRUE(imgui_.type(*app_, "history.figure.step", "1000"));
  EXPECT_TRUE(shows("history.column.at(val/acc, 1000) - baseline"));
  ASSERT_TRUE(imgui_.type(*app_, "history.column_search", "prec"));
  EXPECT_TRUE(shows("history.column.precision"));
  EXPECT_FALSE(shows("history.column.stage"));
}

TEST_F(HistoryOfMetrics, AHeadHasAMenu) {
  open_with(R"x({"columns": ["min(val/acc)", "stage"]})x");
  const auto choose = [&](const std::string& item) {
    const auto box = ui_test_anchors::find("history.head.min(val/acc)");
    ASSERT_TRUE(box);
    ImGuiIO& io = ImGui::GetIO();
    io.AddMousePosEvent((box->x0 + box->x1) / 2, (box->y0 + box->y1) / 2);
    imgui_.frame(*app_);
    for (const bool down : {true, false}) {
      io.AddMouseButtonEvent(1, down);
      for (int i = 0; i < 2; ++i) imgui_.frame(*app_);
    }
    ASSERT_TRUE(imgui_.click(*app_, "history.head." + item));
    EXPECT_TRUE(shows("history.columns"));
  };
  ASSERT_TRUE(shows("history.head.min(val/acc)"));
  choose("factor");
  EXPECT_EQ(kept()["columns"], nlohmann::json({"min(val/acc)", "min(val/acc) / baseline", "stage"}));
  choose("right");
  EXPECT_EQ(kept()["columns"], nlohmann::json({"min(val/acc) / baseline", "min(val/acc)", "stage"}));
  choose("remove");
  EXPECT_EQ(kept()["columns"], nlohmann::json::array({"min(val/acc) / baseline", "stage"}));
}

TEST_F(HistoryOfMetrics, AFilterComparesMetrics) {
  open_with(R"x({"columns": ["stage"], "sorted_by": "name", "ascending": true, "filter": "max(val/acc) >= 0.5"})x");
  EXPECT_EQ(copied(), "run,stage\nalpha,\n");
  ASSERT_TRUE(imgui_.type(*app_, "history.filter", "at(val/acc, 1000)<0.3"));
  EXPECT_EQ(copied(), "run,stage\ngamma,\n");
  ASSERT_TRUE(imgui_.click(*app_, "history.filter"));
  imgui_.press(*app_, ImGuiKey_End);
  ImGui::GetIO().AddInputCharactersUTF8(" val/akk<3");
  imgui_.press(*app_, ImGuiKey_Enter);
  EXPECT_EQ(copied(), "run,stage\n") << "no run that nobody asked for";
  ASSERT_TRUE(imgui_.type(*app_, "history.filter", ""));
  EXPECT_EQ(copied(), "run,stage\nalpha,\nbeta,\ndelta,\ngamma,\n");
  ASSERT_TRUE(imgui_.type(*app_, "history.filter", "val/akk<3"));
  EXPECT_EQ(copied(), "run,stage\n");
}

TEST_F(HistoryOfMetrics, ARunThatLogsIsFollowed) {
  const RunId live = store_.create_run({.name = "epsilon", .status = RunStatus::running});
  store_.metrics().append(live, "val/acc", std::vector<MetricPoint>{{1, 0.75}});
  open_with(R"x({"columns": ["last(val/acc)"], "filter": "epsilon"
  })x");
  EXPECT_EQ(copied(), "run,\"val/acc, %\"\nepsilon,0.75\n");
  store_.metrics().append(live, "val/acc", std::vector<MetricPoint>{{2, 0.875}});
  app_->workspace().ingest(MetricValues{.run = live});
  EXPECT_TRUE(imgui_.frames_until(*app_, [&] { return copied().find("0.875") != std::string::npos; }));
}

}  // namespace
}  // namespace stepladder
