#include "app/desktop/commands/selection_commands.h"

#include "app/desktop/desktop_state.h"

namespace stepladder {

void commands::execute(DesktopState& desktop, const SelectLadder& select) {
  desktop.workspace.selection.show_ladder(select.ladder);
  if (!desktop.panels.is_open("ladder")) desktop.panels.show("ladder");
}

void commands::execute(DesktopState& desktop, const SelectRung& select) {
  Workspace& workspace = desktop.workspace;
  workspace.selection.rung = select.rung;
  const Ladder* ladder = workspace.shown_ladder();
  if (!ladder) return;
  const RunEntry* run = workspace.run_of_ladder(ladder->id);  // the one that stands for the rung, as in the row
  if (run && run->run.rung == select.rung) workspace.selection.shown_run = run->run.id;
}

void commands::execute(DesktopState& desktop, const SelectRun& select) {
  Selection& selection = desktop.workspace.selection;
  if (select.selected) {
    selection.runs.insert(select.run);
    selection.shown_run = select.run;
  } else {
    selection.runs.erase(select.run);
  }
}

void commands::execute(DesktopState& desktop, const SelectRuns& select) {
  Selection& selection = desktop.workspace.selection;
  selection.runs = {select.runs.begin(), select.runs.end()};
  if (!select.runs.empty() && !selection.runs.contains(selection.shown_run)) selection.shown_run = select.runs.front();
}

void commands::execute(DesktopState& desktop, const ClearSelection&) {
  desktop.workspace.selection.runs.clear();
}

void commands::execute(DesktopState& desktop, const SelectBaseline& select) {
  desktop.workspace.selection.baseline_rung = select.rung;
}

void commands::execute(DesktopState& desktop, const ColourRun& chosen) {
  std::map<RunId, int>& colours = desktop.workspace.selection.colours;
  if (chosen.colour < 0)
    colours.erase(chosen.run);
  else
    colours[chosen.run] = chosen.colour;
}

void commands::execute(DesktopState& desktop, const ChooseRun& choose) {
  desktop.workspace.selection.shown_run = choose.run;
}

void commands::execute(DesktopState& desktop, const OpenRun& open) {
  Workspace& workspace = desktop.workspace;
  Selection& selection = workspace.selection;
  selection.shown_run = open.run;
  const RunEntry* entry = workspace.find(open.run);
  // A series of tries has a view of its own.
  const bool is_of_ladder = entry && entry->run.ladder && workspace.ladder(*entry->run.ladder) &&
                            !workspace.kept_tries.contains(*entry->run.ladder);
  if (is_of_ladder) {
    const Ladder* shown = workspace.shown_ladder();
    if (!shown || shown->id != *entry->run.ladder) selection.baseline_rung = 0;
    selection.ladder = *entry->run.ladder;
    selection.rung = entry->run.rung;
  }
  desktop.panels.show("run");
}

}  // namespace stepladder
