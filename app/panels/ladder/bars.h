// The bars of the Ladder view's rows. UI thread.
#pragma once

#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/desktop/models/ladder_model.h"

namespace stepladder {

inline constexpr float ladder_row_height = 31;  // two lines of text

// Bars start at zero unless the slowest would vanish beside the fastest; their axis is then logarithmic and labelled as
// such. A waterfall is always logarithmic: equal factors have equal lengths.
struct BarScale {
  double most = 1;
  double least = 0;
  bool is_log = false;

  float share(double value) const {
    if (is_missing(value) || value <= 0) return 0;
    const double place = is_log ? std::log(value / least) / std::log(most / least) : value / most;
    return static_cast<float>(std::clamp(place, 0.0, 1.0));
  }
};
BarScale scale_for(const LadderModel& model, bool waterfall);

// A rung's bar with its whisker. In a waterfall it begins at the end of the previous one, `before`, and has no whisker.
void draw_bar(const LadderRung& rung, const LadderRung* before, const BarScale& scale, ImVec2 at, float width,
              bool selected, bool waterfall);

}  // namespace stepladder
