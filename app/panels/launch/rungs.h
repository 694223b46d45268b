// The Launch view's rung editor: a table of rungs that are typed, moved, duplicated and switched off. UI thread.
#pragma once

#include "app/panels/launch/form.h"

namespace stepladder {

struct RungEditor {
  int selected = -1;        // a row's id; Alt+Up and Alt+Down move it
  int focus = -1;           // the row whose text gets the keyboard focus
  int follow = -1;          // the row that the table scrolls to: a new one, or one that keys have moved
  std::vector<float> tops;  // of the rows in the last frame, and the end of the last row
  std::string preset_name;
};

void draw_rungs(RungEditor& editor, LaunchForm& form, const CheckedForm& checked, const Workspace& workspace,
                Commands& commands);

}  // namespace stepladder
