// The History view's actions on runs: tag, pin, archive, delete. UI thread.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "app/desktop/commands.h"
#include "app/desktop/workspace.h"

namespace stepladder {

std::vector<const RunEntry*> selected_entries(const Workspace& workspace);

// Ctrl+Z undoes each action. If all runs are already archived or pinned, the action reverts that for all.
void delete_runs(const std::vector<const RunEntry*>& entries, Commands& commands);
void archive_runs(const std::vector<const RunEntry*>& entries, Commands& commands);
void pin_runs(const std::vector<const RunEntry*>& entries, Commands& commands);

struct TagPopup {
  std::array<char, 128> tag{};
  bool open = false;  // in the next frame

  void draw(const std::vector<const RunEntry*>& entries, Commands& commands);
};

}  // namespace stepladder
