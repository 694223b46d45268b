// The History view's table: each run's name, cells and menu. UI thread.
#pragma once

#include <array>
#include <map>

#include "app/desktop/command.h"
#include "app/panels/history/columns.h"
#include "app/panels/history/curation.h"
#include "app/panels/history/rows.h"

namespace stepladder {

struct HistoryTable {
  HistoryColumns columns;
  HistoryRows list;
  std::string drawn_as;        // ImGui's name of the table, which its columns are part of, in the last frame
  bool sorted_anew = false;    // the list's order is to replace the table's
  RunId cursor = 0;            // the run that was clicked last, or that keys have come to
  bool leaves_by_tab = false;  // in this frame: the focus goes to the filter
  bool shows_cursor = false;   // keys moved it: its row is marked
  bool scrolls_to_cursor = false;
  RunId renaming = 0;  // 0: none
  std::array<char, 256> name{};
  std::map<RunId, int> colours;  // of the selected runs, as in the chart beneath

  void rename(const RunEntry& entry);  // begins
  void end_renaming();
};

// Up, Down, Page Up, Page Down, Home and End go through the runs, with Shift select those in between, Space selects or
// deselects, Enter opens. Going selects the run unless several are selected, so that no selection is lost. Call it
// while keys are for the view.
void handle_table_keys(HistoryTable& table, const Workspace& workspace, Commands& commands);

void draw_history_table(HistoryTable& table, TagPopup& tags, const Workspace& workspace, Commands& commands);

// The table as shown, for a file or the clipboard: the names of its columns, then its runs.
std::vector<std::vector<std::string>> shown_table(HistoryTable& table, const Workspace& workspace);

}  // namespace stepladder
