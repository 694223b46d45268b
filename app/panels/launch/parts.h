// The parts of the Launch view, each drawn by the file of its name. UI thread.
#pragma once

#include <string>

#include "app/desktop/command.h"
#include "app/desktop/workspace.h"
#include "app/panels/launch/form.h"

namespace stepladder {

// The queue: the running run and the queued ones.
void draw_queue(const Workspace& workspace, Commands& commands);

// The popup that continues a run from its newest checkpoint.
struct ResumeChoice {
  RunId run = 0;
  std::string steps;  // in total, as typed
};

// Draws the button, with its right edge at `right` (window coordinates), and the popup.
void draw_resume(ResumeChoice& choice, const Workspace& workspace, float right, Commands& commands);

// The rung editor: a table of rungs that are typed, moved, duplicated and switched off.
struct RungEditor {
  int selected = -1;        // a row's id; Alt+Up and Alt+Down move it
  int focus = -1;           // the row whose text gets the keyboard focus
  int follow = -1;          // the row that the table scrolls to: a new one, or one that keys have moved
  std::vector<float> tops;  // of the rows in the last frame, and the end of the last row
  float height = 0;         // that the card needed in the last frame; 0: all that there is
  std::string preset_name;
};

void draw_rungs(RungEditor& editor, LaunchForm& form, const CheckedForm& checked, const Workspace& workspace,
                Commands& commands);

}  // namespace stepladder
