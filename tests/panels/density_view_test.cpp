// Charts of more curves than lines can show: one picture, in which no value is missing, within few corners.
#include <gtest/gtest.h>
#include <implot.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "app/desktop/charts/chart_density.h"
#include "tests/panels/headless.h"

namespace stepladder {
namespace {

class ManyCurves : public testing::Test {
 protected:
  // Each curve has a spike of one step, at a step and a height of its own.
  void make(int count, int steps) {
    for (int i = 0; i < steps; ++i) x_.push_back(i);
    values_.resize(static_cast<std::size_t>(count));
    for (std::size_t k = 0; k < values_.size(); ++k) {
      for (int i = 0; i < steps; ++i) values_[k].push_back(3 + std::sin(i * 0.01 + static_cast<double>(k)));
      const std::size_t spike = (k * 7919 + 13) % static_cast<std::size_t>(steps);
      values_[k][spike] = k % 2 == 0 ? 50 + static_cast<double>(k) : -20 - static_cast<double>(k);
    }
    for (const std::vector<double>& y : values_)
      chart_.curves.push_back({.label = "curve", .x = x_, .y = y, .colour = ImVec4(1, 0, 0, 1), .in_legend = false});
    chart_.id = "many";
    chart_.commands = &commands_;
  }
  void draw_frame() {
    commands_.data = {};
    ImGui::NewFrame();
    ImGui::SetNextWindowPos(ImVec2(0, 0));
    ImGui::SetNextWindowSize(ImVec2(900, 400));
    ImGui::Begin("window");
    draw_chart(chart_);
    ImGui::PushID(chart_.id);
    density_ = is_dense(chart_) ? &density_of_chart() : nullptr;
    ImGui::PopID();
    ImGui::End();
    Headless::render();
  }
  // Draws until the picture is made. Returns the corners of the last frame.
  int draw() {
    for (int frames = 0; frames < 2000; ++frames) {
      draw_frame();
      if (!commands_.data.next_frame) return ImGui::GetDrawData()->TotalVtxCount;
    }
    ADD_FAILURE() << "it never rests";
    return ImGui::GetDrawData()->TotalVtxCount;
  }

  Headless imgui_;
  std::vector<double> x_;
  std::vector<std::vector<double>> values_;
  Commands commands_;
  Chart chart_;
  ChartDensity* density_ = nullptr;
};

TEST_F(ManyCurves, EveryCurvesLowestAndHighestValueIsInThePicture) {
  make(1000, 3000);
  SharedX zoom;
  chart_.shared = &zoom;
  draw();
  ASSERT_NE(density_, nullptr);
  EXPECT_EQ(density_->curves(), 1000u);
  for (std::size_t k = 0; k < values_.size(); ++k) {
    const auto [low, high] = std::minmax_element(values_[k].begin(), values_[k].end());
    ASSERT_EQ(density_->whole()[k].low, *low) << k;
    ASSERT_EQ(density_->whole()[k].high, *high) << k;
    ASSERT_TRUE(density_->shows(x_[static_cast<std::size_t>(low - values_[k].begin())], *low)) << k;
    ASSERT_TRUE(density_->shows(x_[static_cast<std::size_t>(high - values_[k].begin())], *high)) << k;
  }
  zoom.low = 500;
  zoom.high = 700;
  draw();
  for (std::size_t k = 0; k < values_.size(); ++k) {
    const auto [low, high] = std::minmax_element(values_[k].begin() + 500, values_[k].begin() + 701);
    ASSERT_LE(density_->whole()[k].low, *low) << k;
    ASSERT_GE(density_->whole()[k].high, *high) << k;
    ASSERT_TRUE(density_->shows(x_[static_cast<std::size_t>(low - values_[k].begin())], *low)) << k;
  }
}

TEST_F(ManyCurves, CornersStayWithinABudgetWhateverTheirNumberAndLength) {
  make(1000, 3000);
  const int dense = draw();
  EXPECT_LT(dense, 10'000);
  for (const std::size_t count : {3UL, 30UL, 200UL}) {
    chart_.curves.resize(count);
    const int lines = draw();
    EXPECT_EQ(density_, nullptr) << "lines";
    EXPECT_LT(lines, static_cast<int>(5 * chart_.most_points)) << count;
    EXPECT_GT(lines, 1000);
  }
}

TEST_F(ManyCurves, ACurveThatStandsOutIsALineOfItsColour) {
  make(300, 500);
  const int without = draw();
  chart_.curves[7].stands_out = true;
  const int with = draw();
  EXPECT_GT(with, without + 500) << "its line";
  const ImDrawData* drawn = ImGui::GetDrawData();
  std::size_t red = 0;
  for (const ImDrawList* list : drawn->CmdLists)
    for (const ImDrawVert& corner : list->VtxBuffer) red += corner.col == IM_COL32(255, 0, 0, 255) ? 1 : 0;
  EXPECT_GT(red, 500u);
  chart_.curves[7].hidden = true;
  EXPECT_LT(draw(), without + 100);
  EXPECT_EQ(density_->curves(), 299u);
}

TEST_F(ManyCurves, ACurveThatChangesIsDrawnAgain) {
  make(300, 500);
  draw();
  std::vector<double> other(500, 4000);
  chart_.curves[3].y = other;
  draw();
  EXPECT_EQ(density_->whole()[3].high, 4000);
  EXPECT_TRUE(density_->shows(250, 4000));
}

TEST_F(ManyCurves, FewerCurvesAreLookedAtAnewInTheFirstFrame) {
  make(1000, 3000);
  draw();
  chart_.curves.resize(900);
  for (int frames = 0; frames < 20; ++frames) {
    draw_frame();
    ASSERT_EQ(density_->visible().size(), 900u) << frames;
  }
  draw();
  EXPECT_EQ(density_->curves(), 900u);
  EXPECT_TRUE(density_->shows(x_[(898UL * 7919 + 13) % 3000], 50 + 898));
}

TEST_F(ManyCurves, APictureIsFinishedWhileACurveGrowsInEachFrame) {
  make(1000, 3000);
  draw();
  const std::size_t spike = 13;  // of the first curve
  values_[0][spike] = 9000;
  for (int frames = 0; frames < 2000 && !density_->shows(x_[spike], 9000); ++frames) {
    values_[500].back() += 1e-6;
    draw_frame();
  }
  EXPECT_EQ(density_->whole()[0].high, 9000);
  EXPECT_TRUE(density_->shows(x_[spike], 9000));
}

TEST_F(ManyCurves, APictureThatIsBeingMadeIsOfOneKindOfAxis) {
  make(1000, 3000);
  draw();
  values_[500].back() += 1e-6;
  draw_frame();  // begins to look at the curves again
  chart_.log_y = true;
  draw();
  EXPECT_TRUE(density_->shows(x_[13], 50));
  for (const Range& range : density_->whole()) ASSERT_GT(range.low, 0);
}

}  // namespace
}  // namespace stepladder
