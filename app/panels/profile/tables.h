// The tables of the view Profile: operators, the difference of two, and the parts of the model. UI thread, inside a
// frame.
#pragma once

#include <string>

#include "app/desktop/profile/profile_view.h"

namespace stepladder {

// Each fills the available room. Rows whose names don't hold `search` are left out.
void draw_operator_table(const ShownProfile& shown, const std::string& search);
void draw_difference_table(const ProfileDifference& difference, const std::string& search);
void draw_anatomy_table(const ShownProfile* before, const ShownProfile& after);

// "aten::gelu -> triton_fused", and how many more.
std::string title_of(const RowDifference& row);

}  // namespace stepladder
