// A chart's ranges and counts, without drawing it.
#include <gtest/gtest.h>
#include <implot.h>
#include <implot_internal.h>  // an item of the legend

#include <algorithm>
#include <set>
#include <string>

#include "app/desktop/charts/chart_export.h"
#include "app/desktop/charts/chart_layers.h"
#include "app/desktop/charts/chart_view.h"
#include "tests/panels/headless.h"

namespace stepladder {
namespace {

struct PlottedValues {
  std::vector<double> x;
  std::vector<double> y;
};

PlottedValues constant_values(int count, double value) {
  PlottedValues values;
  for (int i = 0; i < count; ++i) {
    values.x.push_back(i);
    values.y.push_back(value);
  }
  return values;
}

Curve plotted(const PlottedValues& values) {
  return {.label = "curve", .x = values.x, .y = values.y, .colour = {}};
}

class DerivedChart : public testing::Test {
 protected:
  ChartView view(YAxis y_axis = YAxis::fitted) { return derive(chart_, {}, y_axis, ImVec2(800, 300)); }
  OffScreen off(const ChartView& shown) { return off_screen(shown, shown.x, shown.y); }

  Headless imgui_;
  Chart chart_;
};

TEST_F(DerivedChart, AShortCurveAmongLongOnesStaysOnScreen) {
  const PlottedValues fast = constant_values(1000, 20);
  const PlottedValues slow = constant_values(12, 90);  // 1 % of all values
  chart_.from_zero = true;
  chart_.curves = {plotted(fast), plotted(slow)};
  EXPECT_EQ(off(view()).curves, 0u);
  EXPECT_EQ(off(view()).points, 0u);
  chart_.from_zero = false;
  EXPECT_EQ(off(view(YAxis::without_outliers)).curves, 0u) << "a run isn't an outlier";
}

TEST_F(DerivedChart, TheScaleFollowsTheCurveThatIsNotContext) {
  const PlottedValues current = constant_values(100, 20), disturbed = constant_values(100, 900);
  chart_.from_zero = true;
  chart_.curves = {plotted(disturbed), plotted(current)};
  EXPECT_GT(view().y.high, 900);
  chart_.curves.front().is_context = true;
  EXPECT_GT(view().y.high, 20);
  EXPECT_LT(view().y.high, 60);
}

TEST_F(DerivedChart, OfAContextFarAboveTheScaleNoStubsAreDrawn) {
  PlottedValues context = constant_values(100, 900);
  context.y[50] = 10;
  const PlottedValues current = constant_values(100, 20);
  const ImVec4 grey(0.5f, 0.25f, 0.5f, 1);
  chart_.id = "context";
  chart_.from_zero = true;
  chart_.legend = false;
  chart_.curves = {plotted(context), plotted(current)};
  chart_.curves[0].colour = grey;
  chart_.curves[1].colour = ImVec4(1, 1, 0, 1);
  const auto corners = [&] {
    for (int i = 0; i < 2; ++i) {
      ImGui::NewFrame();
      ImGui::SetNextWindowSize(ImVec2(800, 600));
      ImGui::Begin("chart");
      draw_chart(chart_);
      ImGui::End();
      ImGui::Render();
    }
    std::ptrdiff_t found = 0;
    for (const ImDrawList* list : ImGui::GetDrawData()->CmdLists)
      found += std::ranges::count(list->VtxBuffer, u32(grey), &ImDrawVert::col);
    return found;
  };
  EXPECT_GT(corners(), 0);
  chart_.curves[0].is_context = true;
  EXPECT_EQ(corners(), 0);
}

TEST_F(DerivedChart, ASpikeIsStillLeftOut) {
  PlottedValues values = constant_values(1000, 20);
  values.y[500] = 900;
  chart_.from_zero = true;
  chart_.curves = {plotted(values)};
  EXPECT_LT(view().y.high, 50);
  EXPECT_EQ(off(view()).points, 1u);
  EXPECT_EQ(off(view()).curves, 0u);
}

TEST_F(DerivedChart, ASteepFallDoesNotFlattenTheCurvesThatDifferAfterIt) {
  PlottedValues values = constant_values(1000, 3);
  for (std::size_t i = 0; i < 50; ++i) values.y[i] = 3 + 8.0 / static_cast<double>(i + 1);
  values.y[999] = 2.9;
  chart_.curves = {plotted(values)};
  EXPECT_GT(view().y.high, 10);
  chart_.falls = true;
  EXPECT_LT(view().y.high, 3.2);
  EXPECT_GT(off(view()).points, 0u) << "which the caption says";
  EXPECT_GT(derive(chart_, {0, 100}, YAxis::fitted, ImVec2(800, 300)).y.high, 10) << "a zoom shows it";
  values.y[60] = 20;
  EXPECT_GT(view().y.high, 19) << "a spike isn't a fall";
}

TEST_F(DerivedChart, OfAFewPointsNoneIsAnOutlier) {
  PlottedValues values = constant_values(12, 20);
  values.y[3] = 31;
  chart_.from_zero = true;
  chart_.curves = {plotted(values)};
  EXPECT_EQ(off(view()).points, 0u);
}

TEST_F(DerivedChart, AFewCurvesHaveEveryPixelColumn) {
  PlottedValues values = constant_values(50'000, 3);
  for (std::size_t i = 0; i < values.y.size(); ++i) values.y[i] = static_cast<double>(i * 7919 % 1000);
  chart_.curves.assign(12, plotted(values));
  const ChartView shown = view();
  EXPECT_EQ(shown.density, nullptr);
  const Polyline expected = decimate(values.x, values.y, shown.x.low, shown.x.high, 800);
  for (const CurveView& curve : shown.curves) {
    ASSERT_EQ(curve.line.x, expected.x);
    ASSERT_EQ(curve.line.y, expected.y);
  }
}

TEST_F(DerivedChart, TheCaptionCountsWholeCurvesThatAreOffScreen) {
  const PlottedValues strong = constant_values(10, 3);
  const PlottedValues context = constant_values(10, 900);
  chart_.curves = {plotted(context), plotted(strong)};
  chart_.curves[0].is_context = true;
  const ChartView shown = view();
  EXPECT_EQ(off(shown).curves, 1u);
  EXPECT_NE(caption(shown, off(shown)).find("10 off-screen (1 whole curve)"), std::string::npos);
}

TEST_F(DerivedChart, AChartThatShowsEverythingSaysNothing) {
  const PlottedValues values = constant_values(10, 3);
  chart_.curves = {plotted(values)};
  const ChartView shown = view();
  EXPECT_EQ(caption(shown, off(shown)), "");
}

TEST_F(DerivedChart, ABandIsInTheRangeAndKeepsItsSpikes) {
  const PlottedValues means = constant_values(5000, 3);
  std::vector<double> low(5000, 2.5), high(5000, 3.5);
  high[1234] = 9;
  chart_.curves = {plotted(means)};
  chart_.curves[0].low = low;
  chart_.curves[0].high = high;
  const ChartView shown = view();
  EXPECT_GE(shown.y.high, 9);
  ASSERT_EQ(shown.curves[0].low.x, shown.curves[0].high.x) << "both edges are at the same places";
  EXPECT_LT(shown.curves[0].low.x.size(), 2000u);
  EXPECT_EQ(std::ranges::max(shown.curves[0].high.y), 9);
  chart_.from_zero = true;
  const ChartView cut = view();
  EXPECT_LT(cut.y.high, 9);
  EXPECT_EQ(caption(cut, off(cut)), "5,000 points, " + std::to_string(cut.curves[0].line.x.size()).insert(1, ",") +
                                        " drawn, extremes off-screen");
}

// One step of a million is narrower than a pixel, and so is the tip of its triangle in the shaded band.
TEST_F(DerivedChart, ASpikeOfABandIsALineOfItsOwn) {
  const PlottedValues means = constant_values(5000, 3);
  std::vector<double> low(5000, 2.5), high(5000, 3.5);
  high[1234] = 9;
  low[4000] = 0;
  for (int i = 2000; i < 2100; ++i) high[static_cast<std::size_t>(i)] = 4;  // a hump, which is wide enough
  chart_.curves = {plotted(means)};
  chart_.curves[0].low = low;
  chart_.curves[0].high = high;
  for (const Range zoom : {Range{}, Range{1200, 1300}, Range{3900, 4100}}) {
    const ChartView shown = derive(chart_, zoom, YAxis::fitted, ImVec2(800, 300));
    const CurveView& curve = shown.curves[0];
    std::set<double> tips;
    for (const std::size_t i : curve.spikes) {
      if (curve.high.y[i] > 3.5) tips.insert(curve.high.y[i]);
      if (curve.low.y[i] < 2.5) tips.insert(curve.low.y[i]);
    }
    const bool sees_first = !zoom.known() || zoom.low < 1234;
    const bool sees_second = !zoom.known() || zoom.low > 3000;
    EXPECT_EQ(tips.contains(9), sees_first);
    EXPECT_EQ(tips.contains(0), sees_second);
    EXPECT_FALSE(tips.contains(4));
  }
}

TEST_F(DerivedChart, ANarrowChartHasSeveralLinesAcross) {
  const PlottedValues values = constant_values(9000, 3);
  chart_.curves = {plotted(values)};
  chart_.id = "narrow";
  chart_.x_label = "tokens";
  for (int i = 0; i < 2; ++i) {
    ImGui::NewFrame();
    ImGui::SetNextWindowSize(ImVec2(300, 300));
    ImGui::Begin("##chart");
    if (ImPlot::BeginPlot("##plot", ImVec2(280, 260))) {
      Range linked{0, 9000};
      set_up_axes(chart_, derive(chart_, linked, YAxis::fitted, ImVec2(240, 220)), linked);
      EXPECT_GE(ImPlot::GetCurrentContext()->CurrentPlot->Axes[ImAxis_X1].Ticker.TickCount(), 3);
      ImPlot::EndPlot();
    }
    ImGui::End();
    ImGui::Render();
  }
}

TEST_F(DerivedChart, AHiddenCurveLeavesTheYAxisAndIsNotExported) {
  const PlottedValues values = constant_values(10, 3);
  const PlottedValues high = constant_values(20, 900);
  chart_.curves = {plotted(values), plotted(high)};
  chart_.curves[1].hidden = true;
  const ChartView shown = view();
  EXPECT_LT(shown.y.high, 10);
  EXPECT_GT(shown.x.high, 19) << "the others don't move";
  EXPECT_EQ(caption(shown, off(shown), true), "");
  EXPECT_EQ(figure_of(chart_).curves.size(), 1u);
  EXPECT_EQ(points_of(chart_).curves.size(), 1u);
  chart_.curves[0].hidden = true;
  const ChartView none = view();
  EXPECT_EQ(caption(none, off(none), true), "all runs are hidden");
}

TEST_F(DerivedChart, TheAxisReachesTheTargetButNotWhileItIsDragged) {
  const PlottedValues values = constant_values(10, 3);
  TargetLine target{.value = 1};
  chart_.curves = {plotted(values)};
  chart_.target = &target;
  EXPECT_LT(view().y.low, 1);
  target.is_taken = true;
  target.begin_frame();
  EXPECT_GT(view().y.low, 2);
}

TEST_F(DerivedChart, AnExportedCurveKeepsItsBand) {
  const PlottedValues values = constant_values(10, 3);
  const std::vector<double> low(10, 2);
  const std::vector<double> high(10, 5);
  chart_.curves = {plotted(values)};
  chart_.curves[0].low = low;
  chart_.curves[0].high = high;
  const Figure figure = figure_of(chart_);
  EXPECT_EQ(figure.curves.at(0).low, low);
  EXPECT_GT(y_range(figure).high, 5);
}

TEST_F(DerivedChart, AnAxisOfPercentSpansTheWhole) {
  const PlottedValues values = constant_values(10, 100);
  chart_.whole = 100;
  chart_.curves = {plotted(values)};
  EXPECT_EQ(view().y.low, 0);
  EXPECT_LT(view().y.high, 105);
  EXPECT_EQ(off(view()).points, 0u);
}

TEST_F(DerivedChart, TheLabelOfTheFloorHasRoomBelowIt) {
  PlottedValues values = constant_values(10, 3);
  values.y[9] = 2;
  chart_.curves = {plotted(values)};
  chart_.floor = 1.9;
  chart_.floor_label = "source entropy";
  const ChartView shown = view();
  EXPECT_GT((chart_.floor - shown.y.low) / (shown.y.high - shown.y.low) * 260, 18) << "pixels of 300, less the axis";
}

TEST_F(DerivedChart, ALogarithmicAxisHasItsNumbersAndNamedTicksTheirWords) {
  PlottedValues values = constant_values(10, 3);
  for (double& x : values.x) x = 4 * (x + 1);
  chart_.curves = {plotted(values)};
  chart_.log_x = true;
  const auto labels = [&] {
    ImGui::NewFrame();
    ImGui::SetNextWindowSize(ImVec2(800, 600));
    ImGui::Begin("chart");
    draw_chart(chart_);
    ImGui::End();
    ImGui::Render();
    ImPool<ImPlotPlot>& plots = ImPlot::GetCurrentContext()->Plots;
    ImPlotTicker& ticker = plots.GetByIndex(plots.GetBufSize() - 1)->Axes[ImAxis_X1].Ticker;
    std::vector<std::string> texts;
    for (int i = 0; i < ticker.TickCount(); ++i) texts.emplace_back(ticker.GetText(i));
    return texts;
  };
  chart_.id = "numbers";
  EXPECT_EQ(labels(), (std::vector<std::string>{"5", "10", "20"}));
  chart_.id = "one";
  values = {.x = {8}, .y = {3}};
  chart_.curves = {plotted(values)};
  chart_.x_ticks = {{4, "4"}, {8, "8"}, {40, "40"}};
  EXPECT_EQ(labels(), (std::vector<std::string>{"4", "8", "40"}));
  EXPECT_GT(view().x.low, 3) << "a logarithmic axis never reaches 0";
  chart_.id = "words";
  chart_.x_ticks = {{4, "four"}, {40, "forty"}};
  EXPECT_EQ(labels(), (std::vector<std::string>{"four", "forty"}));
}

TEST_F(DerivedChart, ACurveWithoutPointsKeepsItsColourInTheLegend) {
  const PlottedValues values = constant_values(10, 3);
  const PlottedValues none;
  const ImVec4 yellow(1, 1, 0, 1);
  chart_.id = "legend";
  chart_.curves = {plotted(values), plotted(none)};
  chart_.curves[1].label = "without points";
  chart_.curves[1].colour = yellow;
  ImGui::NewFrame();
  ImGui::SetNextWindowSize(ImVec2(800, 600));
  ImGui::Begin("chart");
  draw_chart(chart_);
  ImGui::End();
  ImGui::Render();
  ImPool<ImPlotPlot>& plots = ImPlot::GetCurrentContext()->Plots;
  ASSERT_EQ(plots.GetBufSize(), 1);
  ImPlotItemGroup& items = plots.GetByIndex(0)->Items;
  ASSERT_EQ(items.GetItemCount(), 2);
  EXPECT_EQ(items.GetItemByIndex(1)->Color, ImGui::ColorConvertFloat4ToU32(yellow));
}

TEST(Charts, ValuesThatArentNumbersSayInHowManyCurves) {
  std::vector<CurveView> curves(2);
  ChartView view;
  view.curves = curves;
  for (CurveView& curve : view.curves) curve.line.points = 5;
  view.curves[1].line.not_finite = 3;
  EXPECT_TRUE(caption(view, {}, false).ends_with("3 NaN or infinite in 1 curve of 2"));
  view.curves[0].line.not_finite = 3;
  EXPECT_TRUE(caption(view, {}, false).ends_with("6 NaN or infinite"));
}

TEST(Charts, AnEcdfReadsOutUnderTheMouse) {
  const std::vector<double> ms = {60, 65, 70}, share = {0.3, 0.6, 1};
  Chart chart;
  Curve& curve = chart.curves.emplace_back();
  curve.x = ms;
  curve.y = share;
  EXPECT_EQ(nearest_x(chart, 1300), 70) << "a curve's nearest point";
  chart.steps_up = true;
  EXPECT_EQ(nearest_x(chart, 1300), 1300);
}

}  // namespace
}  // namespace stepladder
