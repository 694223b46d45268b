// Executes the commands about saved views: stores what the window shows as text in the project, and restores it.
#include "app/desktop/views/view_commands.h"

#include <algorithm>
#include <set>

#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/desktop_state.h"
#include "app/runs/saved_view.h"
#include "app/text/format.h"
#include "storage/bounded_text.h"

namespace stepladder {
namespace {

// "a, b and 3 more"
std::string list_text(const std::vector<std::string>& names) {
  constexpr std::size_t most = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) text += (i == 0 ? "" : ", ") + bounded(names[i], 80);
  return names.size() > most ? text + " and " + std::to_string(names.size() - most) + " more" : text;
}

std::string gone_text(const std::string& view, const std::vector<std::string>& names) {
  return names.size() == 1 ? "The view " + view + " names a run that is gone: " + names.front() + "."
                           : "The view " + view + " names " + plural(std::ssize(names), "run") +
                                 " that are gone: " + list_text(names) + ".";
}

// A run is the same if its number is, unless its uid says otherwise; one that has moved here is found by its uid.
const RunEntry* same_run(const Workspace& workspace, const ViewRun& wanted) {
  const RunEntry* entry = workspace.find(wanted.id);
  const bool is_known = !wanted.uid.empty();
  if (entry && (!is_known || entry->run.uid.empty() || entry->run.uid == wanted.uid)) return entry;
  if (!is_known) return nullptr;
  const auto found =
      std::ranges::find_if(workspace.runs(), [&](const RunEntry& each) { return each.run.uid == wanted.uid; });
  return found == workspace.runs().end() ? nullptr : &*found;
}

SavedView present_view(const DesktopState& desktop) {
  const Workspace& workspace = desktop.workspace;
  SavedView view{.panels = desktop.panels.open(), .states = {}, .selects = true, .runs = {}};
  for (const Panel& panel : desktop.panels.all())
    if (panel.view) view.states[panel.id] = panel.view(workspace);
  nlohmann::json& window = view.states["window"];
  window = nlohmann::json::object();
  if (const Ladder* ladder = workspace.shown_ladder(); ladder && workspace.selection.ladder != 0)
    if (const auto runs = workspace.runs_of(ladder->id); !runs.empty())
      window["ladder_of"] = run_reference(runs.front()->run.id);
  window["shown"] = run_reference(workspace.selection.shown_run);
  const std::vector<RunId> named = runs_in(view);
  std::set<RunId> all(named.begin(), named.end());
  all.insert(workspace.selection.runs.begin(), workspace.selection.runs.end());
  for (const RunId id : all) {
    const RunEntry* entry = workspace.find(id);
    if (!entry) continue;
    view.runs.push_back(
        {.id = id, .uid = entry->run.uid, .name = entry->run.name, .selected = workspace.selection.runs.contains(id)});
  }
  return view;
}

// nullopt removes it.
void replace_view(DesktopState& desktop, const std::string& name, const std::optional<std::string>& content) {
  if (content) {
    desktop.store.views().save(name, *content);
  } else {
    desktop.store.views().remove(name);
  }
  desktop.workspace.views = desktop.store.views().names();
  if (!content && desktop.workspace.open_view == name) desktop.workspace.open_view.clear();
}

}  // namespace

void open_view(DesktopState& desktop, const std::string& name) {
  const std::optional<std::string> content = desktop.store.views().content(name);
  if (!content) {
    desktop.workspace.views = desktop.store.views().names();
    throw DataError("The view " + name + " is gone: another window has deleted or renamed it.");
  }
  SavedView view;
  try {
    view = saved_view_from(*content);
  } catch (const ViewError& error) {
    throw DataError("The view " + name + " can't be opened: " + error.what() + ".");
  }
  std::vector<std::string> gone;
  renumber(view, [&](ViewRun& run) -> std::optional<RunId> {
    const RunEntry* entry = same_run(desktop.workspace, run);
    if (!entry) gone.push_back(run.name.empty() ? "run " + std::to_string(run.id) : run.name);
    return entry ? std::optional(entry->run.id) : std::nullopt;
  });
  if (view.selects) {
    desktop.workspace.selection.runs.clear();
    for (const ViewRun& run : view.runs)
      if (run.selected) desktop.workspace.selection.runs.insert(run.id);
  }
  const nlohmann::json& window = view.states["window"];
  if (window.is_object()) {
    const RunEntry* of_ladder = desktop.workspace.find(run_in(window.value("ladder_of", nlohmann::json())));
    if (of_ladder && of_ladder->run.ladder) commands::execute(desktop, SelectLadder{*of_ladder->run.ladder});
    if (const RunEntry* shown = desktop.workspace.find(run_in(window.value("shown", nlohmann::json()))))
      desktop.workspace.selection.shown_run = shown->run.id;
  }
  for (const Panel& panel : desktop.panels.all())
    if (const auto state = view.states.find(panel.id); panel.show_view && state != view.states.end())
      panel.show_view(state->second, desktop.workspace);
  desktop.panels.show_all(view.panels);
  desktop.workspace.open_view = name;
  if (!gone.empty()) desktop.messages.show_error(gone_text(name, gone));
}

void commands::execute(DesktopState& desktop, const SaveView& save) {
  const std::optional<std::string> before = desktop.store.views().content(save.name);
  replace_view(desktop, save.name, text_of(present_view(desktop)));
  desktop.workspace.open_view = save.name;
  desktop.can_undo((before ? "Updated view " : "Saved view ") + save.name,
                   [&desktop, name = save.name, before] { replace_view(desktop, name, before); });
}

void commands::execute(DesktopState& desktop, const SaveViewAs& save) {
  if (!desktop.store.views().content(save.name)) replace_view(desktop, save.name, save.content);
}

void commands::execute(DesktopState& desktop, const OpenView& open) {
  open_view(desktop, open.name);
}

void commands::execute(DesktopState& desktop, const RenameView& rename) {
  const auto call = [&desktop](const std::string& from, const std::string& to) {
    desktop.store.views().rename(from, to);
    desktop.workspace.views = desktop.store.views().names();
    if (desktop.workspace.open_view == from) desktop.workspace.open_view = to;
  };
  if (rename.from == rename.to) return;
  call(rename.from, rename.to);
  desktop.can_undo("Renamed view " + rename.from + " to " + rename.to,
                   [call, from = rename.from, to = rename.to] { call(to, from); });
}

void commands::execute(DesktopState& desktop, const DeleteView& asked) {
  const std::optional<std::string> before = desktop.store.views().content(asked.name);
  replace_view(desktop, asked.name, std::nullopt);
  if (before)
    desktop.can_undo("Deleted view " + asked.name,
                     [&desktop, asked, before] { replace_view(desktop, asked.name, before); });
}

}  // namespace stepladder
