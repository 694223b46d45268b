// The cells of the History view's table. UI thread.
#pragma once

#include <imgui.h>

#include "app/desktop/command.h"
#include "app/panels/history/rows.h"

namespace stepladder {

// Moves the cursor so that text is centred in a row of higher pills.
void middle_line();

// `colour` is that of the run's curves.
void draw_cell(HistoryRows& list, const RunColumn& column, const RunEntry& entry, const ColumnContext& context,
               const ImVec4& colour, Commands& commands);

}  // namespace stepladder
