// Carries out the commands about saved views: what the window shows becomes a text in the project, and back.
#include <algorithm>
#include <set>
#include <utility>

#include "app/desktop/desktop_app.h"
#include "app/format.h"
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
  const auto found = std::find_if(workspace.runs().begin(), workspace.runs().end(),
                                  [&](const RunEntry& each) { return each.run.uid == wanted.uid; });
  return found == workspace.runs().end() ? nullptr : &*found;
}

}  // namespace

SavedView DesktopApp::present_view() const {
  SavedView view{.panels = open_, .states = {}, .selects = true, .runs = {}};
  for (const Panel& panel : panels_)
    if (panel.view) view.states[panel.id] = panel.view(workspace_);
  nlohmann::json& window = view.states["window"];
  window = nlohmann::json::object();
  if (const Ladder* ladder = workspace_.shown_ladder(); ladder && workspace_.selected_ladder != 0)
    if (const auto runs = workspace_.runs_of(ladder->id); !runs.empty())
      window["ladder_of"] = run_reference(runs.front()->run.id);
  window["shown"] = run_reference(workspace_.shown_run);
  const std::vector<RunId> named = runs_in(view);
  std::set<RunId> all(named.begin(), named.end());
  all.insert(workspace_.selected_runs.begin(), workspace_.selected_runs.end());
  for (const RunId id : all) {
    const RunEntry* entry = workspace_.find(id);
    if (!entry) continue;
    view.runs.push_back(
        {.id = id, .uid = entry->run.uid, .name = entry->run.name, .selected = workspace_.selected_runs.contains(id)});
  }
  return view;
}

void DesktopApp::replace_view(const std::string& name, const std::optional<std::string>& content) {
  if (content) {
    store_.views().save(name, *content);
  } else {
    store_.views().remove(name);
  }
  workspace_.views = store_.views().names();
  if (!content && workspace_.open_view == name) workspace_.open_view.clear();
}

void DesktopApp::execute(const SaveView& save) {
  const std::optional<std::string> before = store_.views().content(save.name);
  replace_view(save.name, text_of(present_view()));
  workspace_.open_view = save.name;
  can_undo((before ? "Updated view " : "Saved view ") + save.name,
           [this, name = save.name, before] { replace_view(name, before); });
}

void DesktopApp::execute(const SaveViewAs& save) {
  if (!store_.views().content(save.name)) replace_view(save.name, save.content);
}

void DesktopApp::execute(const RenameView& rename) {
  const auto call = [this](const std::string& from, const std::string& to) {
    store_.views().rename(from, to);
    workspace_.views = store_.views().names();
    if (workspace_.open_view == from) workspace_.open_view = to;
  };
  if (rename.from == rename.to) return;
  call(rename.from, rename.to);
  can_undo("Renamed view " + rename.from + " to " + rename.to,
           [call, from = rename.from, to = rename.to] { call(to, from); });
}

void DesktopApp::execute(const DeleteView& asked) {
  const std::optional<std::string> before = store_.views().content(asked.name);
  replace_view(asked.name, std::nullopt);
  if (before) can_undo("Deleted view " + asked.name, [this, asked, before] { replace_view(asked.name, before); });
}

void DesktopApp::execute(const OpenView& open) {
  open_view(open.name);
}

void DesktopApp::open_view(const std::string& name) {
  const std::optional<std::string> content = store_.views().content(name);
  if (!content) {
    workspace_.views = store_.views().names();
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
    const RunEntry* entry = same_run(workspace_, run);
    if (!entry) gone.push_back(run.name.empty() ? "run " + std::to_string(run.id) : run.name);
    return entry ? std::optional(entry->run.id) : std::nullopt;
  });
  if (view.selects) {
    workspace_.selected_runs.clear();
    for (const ViewRun& run : view.runs)
      if (run.selected) workspace_.selected_runs.insert(run.id);
  }
  const nlohmann::json& window = view.states["window"];
  if (window.is_object()) {
    const RunEntry* of_ladder = workspace_.find(run_in(window.value("ladder_of", nlohmann::json())));
    if (of_ladder && of_ladder->run.ladder) execute(SelectLadder{*of_ladder->run.ladder});
    if (const RunEntry* shown = workspace_.find(run_in(window.value("shown", nlohmann::json()))))
      workspace_.shown_run = shown->run.id;
  }
  for (const Panel& panel : panels_)
    if (const auto state = view.states.find(panel.id); panel.show_view && state != view.states.end())
      panel.show_view(state->second, workspace_);
  std::vector<std::string> wanted;
  for (const std::string& id : view.panels) {
    const bool is_known =
        std::any_of(panels_.begin(), panels_.end(), [&](const Panel& panel) { return panel.id == id; });
    if (is_known && std::find(wanted.begin(), wanted.end(), id) == wanted.end()) wanted.push_back(id);
  }
  if (!wanted.empty() && wanted != open_) {
    open_ = std::move(wanted);
    layout_is_stale_ = true;
  }
  workspace_.open_view = name;
  if (!gone.empty()) complain(gone_text(name, gone));
}

}  // namespace stepladder
