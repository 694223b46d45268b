// The Launch view's rungs: which stages the ladder has, chosen by hand or taken from a plan. UI thread.
#pragma once

#include "app/panels/launch/form.h"

namespace stepladder {

void draw_rungs(LaunchForm& form, const Workspace& workspace);

}  // namespace stepladder
