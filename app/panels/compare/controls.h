// The Compare view's head and controls: which runs are compared, over which x axis, against which baseline. UI thread.
#pragma once

#include <array>

#include "app/desktop/commands.h"
#include "app/desktop/workspace.h"
#include "app/panels/compare/view.h"

namespace stepladder {

using RunSearch = std::array<char, 128>;  // typed into the list of runs

// `runs` is how many are compared.
void draw_compare_head(RunSearch& search, const Workspace& workspace, std::size_t runs, Commands& commands);
void draw_compare_controls(CompareView& view);

}  // namespace stepladder
