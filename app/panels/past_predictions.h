// How good the predictions of stages were: the gain that each said against the one that was measured.
#pragma once

#include <vector>

#include "storage/analysis/prediction/prediction.h"

namespace stepladder {

// Draws a square chart as wide as there is room. UI thread.
void draw_past_predictions(const std::vector<PastPrediction>& past);

}  // namespace stepladder
