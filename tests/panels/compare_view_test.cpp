// The Compare view by the mouse: hiding lines, colours, the target, groups, and the arrangement of the charts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <thread>

#include "app/desktop/fields.h"
#include "app/desktop/models/comparison.h"
#include "app/desktop/models/ladder_model.h"
#include "app/desktop/theme.h"
#include "app/panels/compare/grid.h"
#include "app/panels/compare/numbers.h"
#include "app/panels/compare/view.h"
#include "storage/name_pattern.h"
#include "tests/panels/headless.h"

namespace stepladder {
namespace {

std::vector<ComparedLine> lines_of(const std::vector<RunId>& runs) {
  std::vector<ComparedLine> lines;
  for (const RunId run : runs) lines.emplace_back().runs = {run};
  return lines;
}

TEST(HiddenLines, AClickHidesAndShows) {
  const auto lines = lines_of({1, 2, 3});
  HiddenLines hidden;
  hidden.click(2);
  EXPECT_TRUE(hidden.has(2));
  EXPECT_TRUE(hidden.any_of(lines));
  hidden.click(2);
  EXPECT_FALSE(hidden.any_of(lines));
}

TEST(HiddenLines, ADoubleClickShowsOnlyThatLineThenAll) {
  const auto lines = lines_of({1, 2, 3});
  HiddenLines hidden;
  hidden.click(2);  // its first click
  hidden.double_click(2, lines);
  EXPECT_TRUE(hidden.has(1) && !hidden.has(2) && hidden.has(3));
  hidden.click(3);
  hidden.double_click(3, lines);
  EXPECT_TRUE(hidden.has(1) && hidden.has(2) && !hidden.has(3));
  hidden.click(3);
  hidden.double_click(3, lines);
  EXPECT_FALSE(hidden.any_of(lines)) << "it was the only one";
}

TEST(ChartGrid, IsKeptAsText) {
  ChartGrid grid;
  grid.columns = 3;
  grid.row_height = 260;
  grid.charts = {{Quantity::grad_norm}, {Quantity::val_loss, true}};
  EXPECT_EQ(grid_from(to_json(grid)), grid);
  EXPECT_EQ(grid.metrics(), (std::vector<Quantity>{Quantity::val_loss, Quantity::grad_norm}));
}

TEST(ChartGrid, OfALaterVersionIsReadAsFarAsItIsUnderstood) {
  const ChartGrid read = grid_from(
      nlohmann::json::parse(R"({"columns":99,"row_height":3,"charts":[{"metric":"entropy"},{"metric":"lr"},7]})"));
  EXPECT_EQ(read.columns, most_columns);
  EXPECT_EQ(read.row_height, least_row_height);
  EXPECT_EQ(read.charts, (std::vector<GridChart>{{quantity_named("entropy")}, {Quantity::lr}})) << "any name";
  EXPECT_EQ(grid_from(nlohmann::json(7)), ChartGrid{});
}

TEST(ChartGrid, AChartIsMovedToThePlaceOfAnother) {
  ChartGrid grid;
  const auto before = grid.charts;
  grid.move(0, 2);
  EXPECT_EQ(grid.charts, (std::vector<GridChart>{before[1], before[2], before[0], before[3]}));
  grid.move(2, 0);
  EXPECT_EQ(grid.charts, before);
  grid.move(1, 9);
  EXPECT_EQ(grid.charts, before) << "there is no such place";
}

TEST(CompareTarget, IsSaidForOneRunAndForSeveral) {
  ComparedNumbers row;
  set_target(row, {.runs = 1, .reached = 0}, false);
  EXPECT_EQ(row.target_steps, "not reached");
  EXPECT_EQ(row.target_time, "");
  set_target(row, {.runs = 1, .reached = 1, .steps = 1200, .seconds = 65, .tokens = missing}, false);
  EXPECT_EQ(row.target_steps, "1,200");
  EXPECT_EQ(row.target_time, "1 min 05 s");
  EXPECT_EQ(row.target_tokens, "-");
  set_target(row, {.runs = 3, .reached = 2, .steps = 1200, .seconds = 65, .tokens = 5e6}, true);
  EXPECT_EQ(row.target_steps, "~ 1,200 (2 of 3)");
  ComparedTargets targets{.loss = 3.28};
  targets.lines[1] = {.runs = 1, .by_validation = 1};
  EXPECT_EQ(target_title(targets), "steps to val loss 3.2800");
  targets.lines[2] = {.runs = 1};
  EXPECT_EQ(target_title(targets), "steps to loss 3.2800");
  EXPECT_NE(target_explanation(targets).find("of a run without one"), std::string::npos);
}

// Two learning rates with three seeds each; the last run is shorter and becomes NaN.
class SixRuns : public testing::Test {
 protected:
  SixRuns() {
    ladder_ = store_.create_ladder({.name = "sweep"});
    for (int i = 0; i < 6; ++i) {
      std::vector<StepRecord> steps;
      const std::int64_t last = i == 5 ? 40 : 60;
      for (std::int64_t step = 1; step <= last; ++step) {
        const bool is_lost = i == 5 && step > 30;
        const double loss = 5 - 0.02 * static_cast<double>(step) + 0.1 * i;
        steps.push_back({.step = step,
                         .loss = is_lost ? std::numeric_limits<double>::quiet_NaN() : loss,
                         .val_loss = step % 20 == 0 ? loss : missing,
                         .dt_ms = 100,
                         .tokens = 1000});
      }
      runs_.push_back(store_.insert_finished(
          {.name = "run " + std::to_string(i),
           .ladder = ladder_,
           .rung = i,
           .created_at = 1,
           .tokens_per_step = 1000,
           .recipe = i < 3 ? R"({"lr":0.001,"seed":)" + std::to_string(i) + R"(,"steps":60})"
                           : R"({"lr":0.003,"seed":)" + std::to_string(i - 3) + R"(,"steps":60})"},
          steps));
    }
  }
  void open(const DesktopSettings& settings = {.panels = {"compare"}}) {
    app_.emplace(store_, nullptr, settings);
    app_->workspace().patience = std::chrono::hours(1);
    app_->workspace().selection.runs = selected_;
    ImGui::GetIO().DisplaySize = ImVec2(1600, 900);
    ASSERT_TRUE(imgui_.frames_until(*app_, [] { return ui_test_anchors::find("compare.row.1").has_value(); }));
  }
  bool shows(const std::string& anchor) {
    ui_test_anchors::keep();
    for (int i = 0; i < 4; ++i) imgui_.frame(*app_);
    return ui_test_anchors::find(anchor).has_value();
  }
  bool click(const std::string& anchor) {
    ImGui::GetIO().AddMousePosEvent(5, 5);  // two clicks at one place would be a double click
    for (int i = 0; i < 30; ++i) imgui_.frame(*app_);
    return imgui_.click(*app_, anchor);
  }
  void press_right(const std::string& anchor) {
    ASSERT_TRUE(shows(anchor)) << anchor;
    const auto box = *ui_test_anchors::find(anchor);
    ImGuiIO& io = ImGui::GetIO();
    io.AddMousePosEvent((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2);
    imgui_.frame(*app_);
    for (const bool down : {true, false}) {
      io.AddMouseButtonEvent(1, down);
      for (int i = 0; i < 2; ++i) imgui_.frame(*app_);
    }
  }

  RunStore store_ = RunStore::in_memory();
  LadderId ladder_ = 0;
  std::vector<RunId> runs_;
  std::set<RunId> selected_;  // none: all
  Headless imgui_;
  std::optional<DesktopApp> app_;
};

// Two runs of a script that logs its rate, and no times.
TEST_F(SixRuns, ALoggedRateIsTheThroughputAndWhatNobodyRecordedHasNoChart) {
  selected_.clear();
  for (const double rate : {1000.0, 2000.0}) {
    const RunId run = store_.insert_finished({.name = "script"},
                                             std::vector<StepRecord>{{.step = 1, .loss = 4}, {.step = 2, .loss = 3}});
    store_.metrics().append(run, "tokens_per_sec", std::vector<MetricPoint>{{1, rate}, {2, rate}});
    selected_.insert(run);
  }
  app_.emplace(store_, nullptr, DesktopSettings{.panels = {"compare"}});
  app_->workspace().patience = std::chrono::hours(1);
  app_->workspace().selection.runs = selected_;
  ImGui::GetIO().DisplaySize = ImVec2(1600, 900);
  ui_test_anchors::keep();
  EXPECT_TRUE(imgui_.frames_until(*app_, [] {
    return ui_test_anchors::find("chart.tokens_per_s").has_value() && !ui_test_anchors::find("compare.chart.3");
  })) << "and no step time";
  EXPECT_TRUE(shows("compare.chart.2"));
  app_->workspace().selection.runs = {runs_[0], runs_[1]};
  EXPECT_TRUE(imgui_.frames_until(*app_, [] { return ui_test_anchors::find("compare.chart.3").has_value(); }));
}

TEST_F(SixRuns, MoreLinesThanAChartHasRoomForAreNamedAboveTheCharts) {
  open();
  EXPECT_TRUE(shows("compare.legend." + std::to_string(runs_[0]))) << "the first chart is too low for six";
  EXPECT_FALSE(shows("chart.loss.legend.0"));
  ImGui::GetIO().DisplaySize = ImVec2(1600, 1600);
  EXPECT_FALSE(shows("compare.legend." + std::to_string(runs_[0]))) << "the first chart names six";
  EXPECT_TRUE(shows("chart.loss.legend.0"));
  for (int i = 0; i < 7; ++i)
    runs_.push_back(store_.insert_finished({.name = "more " + std::to_string(i)},
                                           std::vector<StepRecord>{{.step = 1, .loss = 4}, {.step = 2, .loss = 3}}));
  selected_ = {runs_.begin(), runs_.end()};
  open();
  const std::string name = "compare.legend." + std::to_string(runs_[12]);
  ASSERT_TRUE(imgui_.frames_until(*app_, [&] { return ui_test_anchors::find(name).has_value(); }));
  ASSERT_TRUE(click(name));
  EXPECT_TRUE(shows("compare.legend." + std::to_string(runs_[0])));
  EXPECT_EQ(nlohmann::json::parse(app_->settings().views.at("compare"))["hidden"].size(), 1u);
}

TEST_F(SixRuns, ALowWindowKeepsBothRowsOfChartsReadableAndTheirTable) {
  open();
  ImGui::GetIO().DisplaySize = ImVec2(1280, 720);
  ASSERT_TRUE(shows("chart.dt_ms"));
  const auto chart = *ui_test_anchors::find("chart.dt_ms"), row = *ui_test_anchors::find("compare.row.1");
  EXPECT_GT(chart.y1 - chart.y0, 65);
  EXPECT_LT(chart.y1 + 40, row.y0) << "with its axis";
  EXPECT_LT(row.y1, 720);
  ImGui::GetIO().AddMousePosEvent(600, 40);
  ImGui::GetIO().AddMouseWheelEvent(0, -100);
  for (int i = 0; i < 30; ++i) imgui_.frame(*app_);
  const std::string fifth = "compare.row." + std::to_string(runs_[4]);
  ASSERT_TRUE(shows(fifth));
  EXPECT_LT(ui_test_anchors::find(fifth)->y1, 720) << "the table keeps five rows, and the view scrolls";
}

TEST_F(SixRuns, TheReadOutOfManyLinesCountsThoseThatItLeavesOut) {
  for (int i = 0; i < 14; ++i)
    runs_.push_back(store_.insert_finished({.name = "more " + std::to_string(i)},
                                           std::vector<StepRecord>{{.step = 1, .loss = 4}, {.step = 60, .loss = 3}}));
  selected_ = {runs_.begin(), runs_.end()};
  open();
  ASSERT_TRUE(imgui_.click(*app_, "chart.loss"));
  bool is_counted = false;
  for (int left = 1; left < 20; ++left) is_counted |= shows("chart.loss.read_out.more." + std::to_string(left));
  EXPECT_TRUE(is_counted);
}

TEST_F(SixRuns, TheValuesBesideACursorAreNotUnderTheLegend) {
  open();
  ImGui::GetIO().DisplaySize = ImVec2(1600, 1500);  // high enough for a legend in the chart
  ASSERT_TRUE(shows("chart.loss.legend.0"));
  const auto legend = *ui_test_anchors::find("chart.loss.legend.0");
  const auto chart = *ui_test_anchors::find("chart.loss"), gap = *ui_test_anchors::find("chart.loss.gap");
  int seen = 0;
  for (const float place : {0.3f, 0.5f, 0.6f, 0.7f, 0.8f, 0.95f}) {
    ImGui::GetIO().AddMousePosEvent(gap.x0 + place * (gap.x1 - gap.x0), (gap.y0 + gap.y1) / 2);
    for (int i = 0; i < 4; ++i) imgui_.frame(*app_);
    for (int named = 4; named <= 6; ++named) {
      const auto box = ui_test_anchors::find("chart.loss.values." + std::to_string(named));
      if (!box) continue;
      ++seen;
      EXPECT_TRUE(box->x1 <= legend.x0 || box->x0 >= legend.x1 || box->y0 >= legend.y1) << place;
      EXPECT_GE(box->x0, chart.x0);
    }
  }
  EXPECT_GT(seen, 4);
}

TEST_F(SixRuns, ANarrowTableSaysWhichColumnsItHides) {
  open();
  ImGui::GetIO().DisplaySize = ImVec2(2600, 900);
  EXPECT_FALSE(shows("compare.hidden_columns"));
  ImGui::GetIO().DisplaySize = ImVec2(1280, 900);
  EXPECT_TRUE(shows("compare.hidden_columns"));
}

TEST_F(SixRuns, AClickOnARowOrInTheLegendHidesALine) {
  selected_ = {1, 2, 3, 4};  // a legend of more would hide the curves
  open();
  EXPECT_FALSE(shows("compare.show_all"));
  ASSERT_TRUE(click("compare.row.2"));
  EXPECT_TRUE(shows("compare.hidden.2"));
  ASSERT_TRUE(click("chart.loss.legend.3"));
  EXPECT_TRUE(shows("compare.hidden.4")) << "the fourth line";
  EXPECT_TRUE(shows("compare.hidden.2"));
  ASSERT_TRUE(click("chart.loss.legend.1"));
  EXPECT_FALSE(shows("compare.hidden.2")) << "it is in the legend while it is hidden";
  ASSERT_TRUE(click("compare.show_all"));
  EXPECT_FALSE(shows("compare.hidden.4"));
  EXPECT_FALSE(shows("compare.show_all"));
}

TEST_F(SixRuns, HiddenLinesAreHiddenAfterTheNextStart) {
  open();
  ASSERT_TRUE(click("compare.row.2"));
  const DesktopSettings settings = app_->settings();
  open(settings);
  EXPECT_TRUE(shows("compare.hidden.2"));
  EXPECT_FALSE(shows("compare.hidden.3"));
}

TEST_F(SixRuns, AltShowsOneLineAlone) {
  open();
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Alt, true);
  ASSERT_TRUE(click("compare.row.3"));
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Alt, false);
  for (const RunId run : runs_) EXPECT_EQ(shows("compare.hidden." + std::to_string(run)), run != 3) << run;
}

TEST_F(SixRuns, AColourIsChosenInTheMenuAndKept) {
  selected_ = {1, 2, 3};
  open();
  const stepladder::Run& second = app_->workspace().find(2)->run;
  EXPECT_EQ(app_->workspace().colour_of(second), 1);
  press_right("compare.row.2");
  ASSERT_TRUE(click("compare.colour.0"));
  EXPECT_EQ(app_->workspace().colour_of(second), 0);
  EXPECT_EQ(app_->workspace().colours_of({1, 2, 3}), (std::vector<int>{1, 0, 2})) << "the chosen colour stays";
  EXPECT_EQ(app_->workspace().colours_of({1, 3}), (std::vector<int>{1, 2})) << "a line keeps its own";
  std::vector<RunId> many(25);
  std::iota(many.begin(), many.end(), 100);
  const std::vector<int> colours = app_->workspace().colours_of(many);
  EXPECT_EQ(std::set<int>(colours.begin(), colours.end()).size(), 25u) << "a hue again has another dash";
  EXPECT_LT(*std::max_element(colours.begin(), colours.end()), 3 * rung_colour_count) << "hues are used evenly";
  LadderViewModel ladder;
  for (int round = 0; round < 2; ++round) {
    DataRequests asked;
    ladder.update(app_->workspace(), ladder_, 0, ComparisonAxis::steps, nullptr, asked);
    read_now(asked, store_, app_->workspace());
  }
  EXPECT_EQ(ladder.model.colour_of(1), 0) << "the Ladder view has it too";
  EXPECT_EQ(ladder.model.colour_of(2), 2);
  open(app_->settings());
  EXPECT_EQ(app_->workspace().selection.colours, (std::map<RunId, int>{{2, 0}}));
  press_right("chart.loss.legend.1");
  ASSERT_TRUE(click("compare.colour_default"));
  EXPECT_TRUE(app_->workspace().selection.colours.empty());
}

TEST_F(SixRuns, ChartsAreAddedMovedRemovedAndRestored) {
  open();
  for (const char* chart : {"chart.loss", "chart.loss.gap", "chart.tokens_per_s", "chart.dt_ms"})
    EXPECT_TRUE(shows(chart));
  ASSERT_TRUE(click("compare.add"));
  ASSERT_TRUE(click("compare.add.val_loss"));
  ASSERT_TRUE(imgui_.frames_until(*app_, [] { return ui_test_anchors::find("chart.val_loss").has_value(); }));
  ASSERT_TRUE(click("compare.chart_menu.1"));
  ASSERT_TRUE(click("compare.chart_remove"));
  EXPECT_FALSE(shows("chart.loss.gap"));
  ASSERT_TRUE(click("compare.chart_menu.0"));
  ASSERT_TRUE(click("compare.chart_right"));
  ASSERT_TRUE(click("compare.layout"));
  ASSERT_TRUE(click("compare.columns.3"));
  imgui_.press(*app_, ImGuiKey_Escape);
  ASSERT_TRUE(click("compare.views"));
  ASSERT_TRUE(imgui_.type(*app_, "views.name", "mine"));
  EXPECT_TRUE(shows("views.open.mine"));
  imgui_.press(*app_, ImGuiKey_Escape);
  ASSERT_TRUE(click("compare.layout"));
  ASSERT_TRUE(click("compare.layout_default"));
  EXPECT_TRUE(shows("chart.loss.gap"));

  const DesktopSettings settings = app_->settings();
  open(settings);
  EXPECT_TRUE(shows("chart.loss.gap"));
  EXPECT_FALSE(shows("chart.val_loss"));
  ASSERT_TRUE(click("compare.views"));
  ASSERT_TRUE(click("views.open.mine"));
  ASSERT_TRUE(imgui_.frames_until(*app_, [] { return ui_test_anchors::find("chart.val_loss").has_value(); }));
  EXPECT_FALSE(shows("chart.loss.gap"));
  const auto throughput = ui_test_anchors::find("chart.tokens_per_s");
  const auto loss = ui_test_anchors::find("chart.loss");
  ASSERT_TRUE(throughput && loss);
  EXPECT_LT(throughput->x1, loss->x0) << "the loss was moved to the right";
  EXPECT_NEAR(throughput->y0, loss->y0, 1) << "three in a row";
}

TEST(MetricPattern, AStarMeansAnyText) {
  EXPECT_TRUE(is_meant("val/acc", "val/*"));
  EXPECT_TRUE(is_meant("val/acc", " VAL/*cc "));
  EXPECT_FALSE(is_meant("train/val/acc", "val/*"));
  EXPECT_TRUE(is_meant("train/val/acc", "val/"));
  EXPECT_TRUE(is_meant("a", ""));
  EXPECT_FALSE(is_meant("val/acc", "*/f1"));
  EXPECT_TRUE(is_meant(std::string(2000, 'a') + "b", "*a*a*a*a*b"));
  EXPECT_EQ(prefix_of("val/acc/top1"), "val");
  EXPECT_EQ(prefix_of("acc"), "");
}

TEST(SeenMetrics, AreThoseOfManyThatWereSeenLast) {
  std::vector<Quantity> all;
  for (int i = 0; i < 200; ++i) all.push_back(quantity_named("seen/" + std::to_string(i)));
  SeenMetrics seen;
  EXPECT_EQ(seen.of({all[0], all[1]}).size(), 2u) << "few are all computed";
  EXPECT_TRUE(seen.of(all).empty());
  for (const Quantity metric : all) seen.see(metric);
  const std::vector<Quantity> last = seen.of(all);
  EXPECT_EQ(last.size(), 48u);
  EXPECT_EQ(last.back(), all.back());
}

TEST_F(SixRuns, MetricsAreFoundByPatternAndShownAsCharts) {
  for (const RunId run : runs_) {
    for (const char* const name : {"val/acc", "val/f1", "reward"}) {
      std::vector<MetricPoint> points;
      for (std::int64_t step = 1; step <= 60; ++step) points.push_back({step, 0.01 * static_cast<double>(step * run)});
      store_.metrics().append(run, name, points);
    }
  }
  open();
  ASSERT_TRUE(click("compare.add"));
  EXPECT_TRUE(shows("compare.add.reward"));
  ASSERT_TRUE(imgui_.type(*app_, "compare.metric_search", "val/*"));
  const auto has_chart = [](const char* name) { return ui_test_anchors::find(name).has_value(); };
  ASSERT_TRUE(imgui_.frames_until(*app_, [&] { return has_chart("chart.val/acc") && has_chart("chart.val/f1"); }));
  EXPECT_FALSE(shows("chart.reward"));
  open(app_->settings());
  EXPECT_TRUE(imgui_.frames_until(*app_, [&] { return has_chart("chart.val/f1"); })) << "kept with the settings";
  ASSERT_TRUE(click("group.val/"));
  EXPECT_FALSE(shows("chart.val/f1")) << "the group is folded";
  EXPECT_TRUE(shows("chart.loss"));
  open(app_->settings());
  EXPECT_FALSE(shows("chart.val/f1")) << "also after a restart";
  ASSERT_TRUE(click("group.val/"));
  EXPECT_TRUE(imgui_.frames_until(*app_, [&] { return has_chart("chart.val/f1"); }));
}

TEST_F(SixRuns, TheRunViewHasAChartOfEachMetric) {
  for (const char* const name : {"val/acc", "reward"}) {
    std::vector<MetricPoint> points;
    for (std::int64_t step = 1; step <= 60; ++step) points.push_back({step, static_cast<double>(step)});
    store_.metrics().append(2, name, points);
  }
  app_.emplace(store_, nullptr, DesktopSettings{.panels = {"run"}});
  app_->workspace().selection.shown_run = 2;
  ImGui::GetIO().DisplaySize = ImVec2(1600, 900);
  const auto has_chart = [](const char* name) { return ui_test_anchors::find(name).has_value(); };
  ASSERT_TRUE(imgui_.frames_until(*app_, [&] { return has_chart("run.tab.Metrics"); }));
  ASSERT_TRUE(click("run.tab.Metrics"));
  ASSERT_TRUE(imgui_.frames_until(
      *app_, [&] { return has_chart("chart.metric.val/acc") && has_chart("chart.metric.reward"); }));
  ASSERT_TRUE(imgui_.type(*app_, "run.metric_search", "rew"));
  EXPECT_TRUE(shows("chart.metric.reward"));
  EXPECT_FALSE(shows("chart.metric.val/acc"));
  app_->workspace().selection.shown_run = 1;
  EXPECT_FALSE(shows("run.metric_search")) << "it has none, and says so";
}

TEST_F(SixRuns, AllChartsShowTheirValuesAtTheCrossHair) {
  open();
  EXPECT_FALSE(shows("chart.dt_ms.values.6"));
  ASSERT_TRUE(imgui_.click(*app_, "chart.loss"));  // the mouse is over it now
  EXPECT_TRUE(shows("chart.dt_ms.values.6")) << "of all six lines";
  EXPECT_TRUE(shows("chart.loss.gap.values.5"));
  EXPECT_FALSE(shows("chart.loss.values.6")) << "its values are in the tooltip";
}

TEST_F(SixRuns, TheReadOutCoversNoCurveOfItsChart) {
  open();
  for (const char* chart : {"chart.loss", "chart.loss.gap"}) {
    ASSERT_TRUE(imgui_.click(*app_, chart));
    const std::string read_out = std::string(chart) + ".read_out";
    ASSERT_TRUE(shows(read_out));
    EXPECT_TRUE(shows(read_out + ".covers.0")) << chart;
  }
}

TEST_F(SixRuns, TheReadOutIsNoHigherThanALowChart) {
  open();
  ImGui::GetIO().DisplaySize = ImVec2(1280, 720);
  ASSERT_TRUE(imgui_.click(*app_, "chart.loss"));
  ASSERT_TRUE(shows("chart.loss.read_out"));
  const auto box = ui_test_anchors::find("chart.loss.read_out"), plot = ui_test_anchors::find("chart.loss");
  EXPECT_LT(box->y1 - box->y0, std::max(120.0f, plot->y1 - plot->y0));
  EXPECT_GT(box->x0, plot->x0) << "nor beside it, over other charts";
  EXPECT_LT(box->x1, plot->x1);
}

TEST_F(SixRuns, NoControlIsAloneOnALineInASmallWindow) {
  open();
  ImGui::GetIO().DisplaySize = ImVec2(1280, 720);
  for (const bool has_target : {false, true}) {
    if (has_target) {
      ASSERT_TRUE(click("compare.target"));
    }
    ASSERT_TRUE(shows("compare.target"));
    EXPECT_NEAR(ui_test_anchors::find("compare.target")->y0, ui_test_anchors::find("compare.group")->y0, 4);
  }
}

TEST_F(SixRuns, ATargetHasARowOfNumbersAndALineThatIsDragged) {
  open();
  EXPECT_FALSE(shows("compare.reached"));
  ASSERT_TRUE(click("compare.target"));
  EXPECT_TRUE(shows("compare.reached"));
  ASSERT_TRUE(imgui_.type(*app_, "compare.target_loss", "4.5"));
  ASSERT_TRUE(shows("chart.loss.target"));
  const auto line = *ui_test_anchors::find("chart.loss.target");
  ImGuiIO& io = ImGui::GetIO();
  const float x = line.x0 + (line.x1 - line.x0) * 0.4f;
  const float y = (line.y0 + line.y1) / 2;
  io.AddMousePosEvent(x, y);
  for (int i = 0; i < 3; ++i) imgui_.frame(*app_);
  io.AddMouseButtonEvent(0, true);
  for (int i = 0; i < 2; ++i) imgui_.frame(*app_);
  io.AddMousePosEvent(x, y + 20);
  for (int i = 0; i < 2; ++i) imgui_.frame(*app_);
  io.AddMouseButtonEvent(0, false);
  ASSERT_TRUE(shows("chart.loss.target"));
  EXPECT_GT(ui_test_anchors::find("chart.loss.target")->y0, line.y0 + 5);
  const auto text = app_->settings().views.at("compare");
  EXPECT_FALSE(nlohmann::json::parse(text).contains("zoom")) << "the charts stayed where they were";
  const double target = nlohmann::json::parse(text).at("target").get<double>();
  EXPECT_LT(target, 4.5);
  EXPECT_GT(target, 3.5);
  ASSERT_TRUE(click("compare.target"));
  EXPECT_FALSE(shows("compare.reached"));
}

class GroupedRuns : public SixRuns {
 protected:
  ComparisonViewModel compared(const ComparisonOptions& options) {
    ComparisonViewModel shown;
    Workspace& workspace = app_->workspace();
    for (int rounds = 0; rounds < 50; ++rounds) {
      DataRequests asked;
      shown.update(workspace, workspace.runs_of(ladder_), 1, options, {}, asked);
      if (asked.empty()) return shown;
      read_now(asked, store_, workspace);
    }
    ADD_FAILURE() << "it never rests";
    return shown;
  }
};

TEST_F(GroupedRuns, AreMeansOverTheRunsThatAreThere) {
  open();
  EXPECT_EQ(values_to_group_by(app_->workspace().runs_of(ladder_)), (std::vector<std::string>{"lr", "seed"}))
      << "all have the same number of steps";
  const ComparisonViewModel shown = compared({.group_by = "recipe.lr", .target_loss = 4.45});
  ASSERT_EQ(shown.curves.lines.size(), 2u);
  const ComparedLine& high = shown.curves.lines[1];
  EXPECT_EQ(high.label, "lr = 0.003, n = 3");
  EXPECT_EQ(high.runs, (std::vector<RunId>{4, 5, 6}));
  const ComparedMetric& loss = high.of(Quantity::loss);
  ASSERT_EQ(loss.points.x.size(), 60u);
  EXPECT_NEAR(loss.points.y[0], 5 - 0.02 + 0.4, 1e-9);
  EXPECT_NEAR(loss.low[0], 5 - 0.02 + 0.3, 1e-9);
  EXPECT_NEAR(loss.high[0], 5 - 0.02 + 0.5, 1e-9);
  EXPECT_EQ(loss.runs[0], 3);
  EXPECT_EQ(loss.runs[34], 2) << "one is NaN";
  EXPECT_EQ(loss.runs[59], 2) << "it has ended";
  EXPECT_NEAR(loss.points.y[59], 5 - 1.2 + 0.35, 1e-9);
  EXPECT_EQ(shown.judged.at(4).runs.size(), 0u);
  EXPECT_EQ(shown.judged.at(4).over_baseline.verdict, Verdict::cannot_tell) << "times of whole milliseconds";
  // Validated at steps 20, 40 and 60.
  EXPECT_EQ(shown.targets.lines.at(1).reached, 3);
  EXPECT_EQ(shown.targets.lines.at(1).by_validation, 3);
  EXPECT_EQ(shown.targets.lines.at(1).steps, 40);
  EXPECT_EQ(shown.targets.lines.at(4).reached, 2);
}

TEST_F(GroupedRuns, AGroupThatMixesOtherValuesHasNoVerdict) {
  open();
  const ComparisonViewModel shown = compared({.group_by = "recipe.seed"});
  const RungJudgement& second = shown.judged.at(2);
  EXPECT_TRUE(is_missing(second.over_baseline.factor));
  EXPECT_EQ(second.why_no_factor, "mixes lr 0.001, 0.003");
}

TEST_F(GroupedRuns, ARenamedRunLeavesTheOthersNamesShort) {
  store_.rename_run(runs_[2], "tuned");
  open();
  const std::vector<ComparedLine> lines = compared({}).curves.lines;
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[0].label, "0");
  EXPECT_EQ(lines[0].name, "run 0");
  EXPECT_EQ(lines[2].label, "tuned");
}

TEST_F(GroupedRuns, BySeedHaveARunOfEachLearningRate) {
  open();
  const ComparisonViewModel shown = compared({.group_by = "recipe.seed"});
  ASSERT_EQ(shown.curves.lines.size(), 3u);
  EXPECT_EQ(shown.curves.lines[1].label, "seed = 1, n = 2");
  EXPECT_EQ(shown.curves.lines[1].runs, (std::vector<RunId>{2, 5}));
  const ComparisonViewModel alone = compared({.group_by = "recipe.nothing"});
  EXPECT_EQ(alone.curves.lines.size(), 6u) << "no run has it";
  const ComparisonViewModel over_loss = compared({.axis = Axis::loss, .group_by = "recipe.seed"});
  EXPECT_TRUE(over_loss.curves.lines[1].of(Quantity::dt_ms).low.empty()) << "points over a metric have no mean";
  EXPECT_EQ(over_loss.curves.lines[0].of(Quantity::dt_ms).points.x.size(), 120u);
}

// More runs than are judged together: some equal, some slightly faster, one twice as fast.
class VeryManyRuns : public testing::Test {
 protected:
  static constexpr int count = 230;

  VeryManyRuns() {
    const LadderId ladder = store_.create_ladder({.name = "many"});
    for (int i = 0; i < count; ++i) {
      std::vector<StepRecord> steps;
      const double ms = i == 7 ? 50 : 100 * (1 - 0.0002 * i);
      for (std::int64_t step = 1; step <= 40; ++step) {
        const double wobble = 1 + 0.002 * std::sin(static_cast<double>(step * (i + 3)));
        steps.push_back({.step = step, .loss = 4, .dt_ms = ms * wobble, .tokens = 1000});
      }
      store_.insert_finished({.name = "run " + std::to_string(i),
                              .ladder = ladder,
                              .rung = i,
                              .status = RunStatus::finished,
                              .created_at = 1,
                              .tokens_per_step = 1000},
                             steps);
    }
    workspace_.load(store_);
    workspace_.patience = std::chrono::hours(1);
    for (const RunEntry& entry : workspace_.runs()) runs_.push_back(&entry);
    std::ranges::sort(runs_, {}, [](const RunEntry* entry) { return entry->run.id; });
  }
  void show(const ComparisonOptions& options) {
    for (int rounds = 0; rounds < 20'000; ++rounds) {
      DataRequests asked;
      if (rounds > 100) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // another thread works
      shown_.update(workspace_, runs_, runs_.front()->run.id, options, {}, asked);
      if (asked.empty() && rounds > 0) return;
      most_asked_ = std::max(most_asked_, asked.series.size() + asked.excerpts.size());
      read_now(asked, store_, workspace_);
    }
    ADD_FAILURE() << "it never rests";
  }
  // One call; no data is read.
  DataRequests look(const ComparisonOptions& options, std::size_t runs = count, int base = 0) {
    DataRequests asked;
    const std::vector<const RunEntry*> first(runs_.begin(), runs_.begin() + static_cast<std::ptrdiff_t>(runs));
    shown_.update(workspace_, first, first[static_cast<std::size_t>(base)]->run.id, options, {}, asked);
    EXPECT_LE(shown_.unjudged, shown_.curves.lines.size());
    return asked;
  }
  // Has the rows from the twenty-first on judged on another thread, which goes on.
  ComparisonOptions begin_to_judge_others() {
    const RunId first = runs_.front()->run.id;
    ComparisonOptions options;
    for (int i = 0; i < 20; ++i) options.rows_on_screen.push_back(first + i);
    show(options);
    for (RunId& row : options.rows_on_screen) row += 20;
    workspace_.patience = std::chrono::milliseconds(0);
    read_now(look(options), store_, workspace_);
    look(options);
    return options;
  }

  Headless imgui_;
  RunStore store_ = RunStore::in_memory();
  Workspace workspace_;
  std::vector<const RunEntry*> runs_;
  ComparisonViewModel shown_;
  std::size_t most_asked_ = 0;
};

TEST_F(VeryManyRuns, AreJudgedWhereTheyAreSeen) {
  const RunId first = runs_.front()->run.id;
  std::vector<RunId> rows;
  for (int i = 0; i < 20; ++i) rows.push_back(first + i);
  show({.rows_on_screen = rows});
  ASSERT_EQ(shown_.curves.lines.size(), static_cast<std::size_t>(count));
  EXPECT_EQ(shown_.judged.size(), 20u);
  EXPECT_EQ(shown_.unjudged, static_cast<std::size_t>(count) - 20);
  EXPECT_LE(most_asked_, 21u) << "the others' steps aren't read";
  EXPECT_TRUE(shown_.judged.at(first).is_baseline);
  for (RunId& row : rows) row += 20;
  show({.rows_on_screen = rows});
  EXPECT_EQ(shown_.judged.size(), 40u) << "those seen before stay";
  const std::map<RunId, RungJudgement> some = shown_.judged;
  show({.rows_on_screen = rows, .judges_all = true});
  EXPECT_EQ(shown_.unjudged, 0u);
  ASSERT_EQ(shown_.judged.size(), static_cast<std::size_t>(count));
  EXPECT_EQ(some.at(first + 7).over_baseline.verdict, Verdict::faster) << "whatever the others are";
  for (const auto& [line, rung] : shown_.judged) {
    EXPECT_FALSE(rung.over_baseline.is_open);
    const auto before = some.find(line);
    if (before == some.end()) continue;
    const Gain& gain = before->second.over_baseline;
    EXPECT_DOUBLE_EQ(gain.factor, rung.over_baseline.factor);
    if (line != first) {
      EXPECT_EQ(gain.ci95.low, rung.over_baseline.ci95.low);
    }
    if (!gain.is_open) {
      EXPECT_EQ(gain.verdict, rung.over_baseline.verdict) << line;
    }
  }
}

TEST_F(VeryManyRuns, AreJudgedAgainForAnotherBaseline) {
  const RunId first = runs_.front()->run.id;
  const ComparisonOptions options{.rows_on_screen = {first, first + 7}};
  show(options);
  ASSERT_TRUE(shown_.judged.at(first).is_baseline);
  std::swap(runs_[0], runs_[7]);
  show(options);
  EXPECT_TRUE(shown_.judged.at(first + 7).is_baseline);
  EXPECT_NEAR(shown_.judged.at(first).over_baseline.factor, 0.5, 0.01);
}

TEST_F(VeryManyRuns, WhatIsJudgedOfFewerIsNotTakenForAll) {
  show({.judges_all = true});
  ASSERT_EQ(shown_.unjudged, 0u);
  workspace_.patience = std::chrono::milliseconds(0);
  look({}, 100);  // begins
  workspace_.patience = std::chrono::hours(1);
  show({.judges_all = true});
  EXPECT_EQ(shown_.unjudged, 0u);
  EXPECT_EQ(shown_.judged.size(), static_cast<std::size_t>(count));
}

TEST_F(VeryManyRuns, AreJudgedAgainIfAResultCameForAnotherBaseline) {
  const ComparisonOptions options = begin_to_judge_others();
  while (look({}, count, 100).next_frame) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  workspace_.patience = std::chrono::hours(1);
  show(options);
  for (const RunId row : options.rows_on_screen) EXPECT_TRUE(shown_.judged.contains(row)) << row;
  EXPECT_EQ(shown_.unjudged, count - shown_.judged.size());
}

TEST_F(VeryManyRuns, AreNotShownInPlaceOfFewThatHoldTogether) {
  begin_to_judge_others();
  const std::size_t before = shown_.judged.size();
  for (std::size_t i = 0; i < 100; ++i) workspace_.load_series(store_, runs_[i]->run.id);
  while (look({}, 100).next_frame) {
    ASSERT_TRUE(shown_.judged.size() == before || shown_.judged.size() == 100) << shown_.judged.size();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(shown_.judged.size(), 100u);
}

TEST_F(VeryManyRuns, ThoseNotJudgedAreNeverMoreThanThereAre) {
  const RunId first = runs_.front()->run.id;
  const ComparisonOptions options{.rows_on_screen = {first, first + 7}};
  show(options);
  EXPECT_EQ(shown_.unjudged, static_cast<std::size_t>(count) - 2);
  workspace_.patience = std::chrono::milliseconds(0);
  while (look(options, 205).next_frame) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(shown_.curves.lines.size(), 205u);
  EXPECT_EQ(shown_.unjudged, 203u);
}

// The corners of this colour in the frame that was drawn last.
std::size_t corners_of(const ImVec4& colour) {
  std::size_t found = 0;
  for (const ImDrawList* list : ImGui::GetDrawData()->CmdLists)
    for (const ImDrawVert& corner : list->VtxBuffer) found += corner.col == u32(colour) ? 1 : 0;
  return found;
}

TEST(CompareWithoutALadder, ShowsTheNewestRunsWithSteps) {
  RunStore store = RunStore::in_memory();
  std::vector<StepRecord> steps;
  for (std::int64_t step = 1; step <= 20; ++step) steps.push_back({.step = step, .loss = 4, .dt_ms = 100});
  for (int i = 0; i < 20; ++i)
    store.insert_finished({.name = "log " + std::to_string(i), .source = "import", .created_at = 1},
                          i == 19 ? std::vector<StepRecord>{} : steps);
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"compare"}});
  ASSERT_TRUE(imgui.frames_until(app, [] { return ui_test_anchors::find("chart.loss").has_value(); }));
  const std::vector<const RunEntry*> shown = app.workspace().compared();
  ASSERT_EQ(shown.size(), 12u);
  EXPECT_EQ(shown.front()->run.name, "log 7");
  EXPECT_EQ(shown.back()->run.name, "log 18") << "the newest has no steps";
  app.workspace().selection.runs = {1, 2};
  EXPECT_EQ(app.workspace().compared().size(), 2u);
}

TEST_F(VeryManyRuns, ChartsHaveTheColoursOfTheThemeThatIsChosen) {
  DesktopApp app(store_, nullptr, DesktopSettings{.panels = {"compare"}});
  app.workspace().patience = std::chrono::hours(1);
  ImGui::GetIO().DisplaySize = ImVec2(1600, 900);
  ASSERT_TRUE(imgui_.frames_until(app, [] { return ui_test_anchors::find("chart.loss.density").has_value(); }));
  std::vector<RunId> lines_drawn;
  for (const RunEntry* entry : app.workspace().compared()) lines_drawn.push_back(entry->run.id);
  const int colour = app.workspace().colours_of(lines_drawn).front();  // of the baseline, which is a line
  const std::size_t corners = corners_of(rung_colour(colour));
  ASSERT_GT(corners, 50u);
  apply_theme(false, 1);
  for (int i = 0; i < 3; ++i) imgui_.frame(app);
  EXPECT_GT(corners_of(rung_colour(colour)), corners / 2);
}

}  // namespace
}  // namespace stepladder
