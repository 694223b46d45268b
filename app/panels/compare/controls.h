// The Compare view's head and controls: which runs are compared, over which x axis, against which baseline, in which
// charts. UI thread.
#pragma once

#include <array>

#include "app/desktop/command.h"
#include "app/desktop/fields.h"
#include "app/desktop/views/views_popup.h"
#include "app/desktop/workspace.h"
#include "app/panels/compare/view.h"

namespace stepladder {

// The texts in the fields.
struct CompareFields {
  std::array<char, 128> search{};  // in the list of runs
  ViewsPopup views{.panel = "compare"};
  NumberField target;
};

// `runs` is how many are compared.
void draw_compare_head(CompareFields& fields, CompareView& view, const Workspace& workspace, std::size_t runs,
                       Commands& commands);
void draw_compare_controls(CompareFields& fields, CompareView& view, const Workspace& workspace,
                           const std::vector<const RunEntry*>& runs);

// The context menu of a line, which its row and the legends open: its colour, hide, show only it, baseline, details.
void draw_line_menu(CompareView& view, const Workspace& workspace, Commands& commands);

}  // namespace stepladder
