// The Launch view's popup that continues a run from its newest checkpoint. UI thread.
#pragma once

#include <string>

#include "app/desktop/command.h"
#include "app/desktop/workspace.h"

namespace stepladder {

struct ResumeChoice {
  RunId run = 0;
  std::string steps;  // in total, as typed
};

// Draws the button, with its right edge at `right` (window coordinates), and the popup.
void draw_resume(ResumeChoice& choice, const Workspace& workspace, float right, Commands& commands);

}  // namespace stepladder
