// The parts of the workspace that single features write.
#include <algorithm>

#include "app/desktop/models/import_preview.h"
#include "app/desktop/profile/profile_state.h"
#include "app/desktop/workspace.h"
#include "app/desktop/workspace/launch_state.h"
#include "app/desktop/workspace/machines_state.h"
#include "app/desktop/workspace/verification.h"

namespace stepladder {

Workspace::Workspace() = default;

const SkippedRung* LaunchPlan::skipped(int asked_place) const {
  const auto found = std::ranges::find(plan.skipped, asked_place, &SkippedRung::asked);
  return found == plan.skipped.end() ? nullptr : &*found;
}

std::string text_of(const LadderRequest& request) {
  const Recipe& base = request.base;  // to_json replaces odd bytes of paths
  return to_json(base) + " " + base.data + "\n" + base.weights + "\n" + base.tokenizer + "\n" +
         rungs_text(request.rungs) + (request.climb == Climb::alone ? " alone" : "");
}

}  // namespace stepladder
