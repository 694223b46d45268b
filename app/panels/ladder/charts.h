// The Ladder view's charts: losses, their differences from the baseline's, step times. UI thread.
#pragma once

#include <imgui.h>

#include <string>
#include <vector>

#include "app/desktop/charts/charts.h"
#include "app/desktop/command.h"
#include "app/desktop/models/ladder_model.h"

namespace stepladder {

// The charts' data: `selected` and `baseline` are emphasised, `caption` is printed beneath exported figures.
struct LadderCurves {
  const LadderModel& model;
  int selected = 0;
  int baseline = 0;
  const std::vector<std::string>& caption;
};

// The losses' x axis, and its zoom.
struct LadderAxis {
  ComparisonAxis comparison_axis = ComparisonAxis::steps;
  SharedX x;

  void choose(ComparisonAxis chosen) {
    comparison_axis = chosen;
    x = {};
  }
};

// Draws the loss curves, and beneath them each one's difference from the baseline's.
void draw_ladder_losses(LadderAxis& axis, const LadderCurves& shown, ImVec2 size, Commands& commands);

// `shows_operators` is the switch to the operators; null: the ladder has none.
void draw_ladder_times(const LadderCurves& shown, ImVec2 size, bool* shows_operators, Commands& commands);

}  // namespace stepladder
