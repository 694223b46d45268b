// The passes of the view Profile: the kept results of `stepladder profile`, one or two compared. UI thread, inside a
// frame.
#pragma once

#include "app/desktop/panel.h"
#include "app/desktop/profile/profile_view.h"

namespace stepladder {

// Returns whether the user chose others: `question` names them.
bool draw_passes(ProfileQuestion& question, const ProfileView& view, const Workspace& workspace, Commands& commands);

}  // namespace stepladder
