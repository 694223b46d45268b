// The History view's actions on runs: tag, pin, archive, delete. UI thread.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "app/desktop/command.h"
#include "app/desktop/workspace.h"
#include "app/panels/history/rows.h"

namespace stepladder {

// The selected runs. Actions change only those that the table lists, never those that the filter hides.
struct HistorySelection {
  std::vector<const RunEntry*> listed;
  std::size_t hidden = 0;
};
HistorySelection selection_of(const Workspace& workspace, const HistoryRows& list);

// Ctrl+Z undoes each action. If all runs are already archived or pinned, the action reverts that for all.
void delete_runs(const std::vector<const RunEntry*>& entries, Commands& commands);
void archive_runs(const std::vector<const RunEntry*>& entries, Commands& commands);
void pin_runs(const std::vector<const RunEntry*>& entries, Commands& commands);
// Adds the tags in `words` to the runs, but removes a tag that all of them have.
void tag_runs(const std::vector<const RunEntry*>& entries, const std::string& words, Commands& commands);

struct TagPopup {
  std::array<char, 128> tag{};
  bool open = false;  // in the next frame

  void draw(const std::vector<const RunEntry*>& entries, Commands& commands);
};

// A button that lists what is in the bin, to restore it.
struct BinPopup {
  void draw(const Workspace& workspace, Commands& commands);
};

}  // namespace stepladder
