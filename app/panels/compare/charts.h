// The Compare view's charts: three metrics, and the difference of the first one from the baseline. UI thread.
#pragma once

#include <imgui.h>

#include "app/desktop/commands.h"
#include "app/panels/compare/view.h"

namespace stepladder {

void draw_compared_metric(CompareView& view, std::size_t metric, const char* id, ImVec2 size, Commands& commands);
void draw_compared_gap(CompareView& view, ImVec2 size, Commands& commands);

}  // namespace stepladder
