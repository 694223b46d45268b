// The state that commands and panels share: a command changes it between frames, on the UI thread.
#include "app/desktop/desktop_state.h"

#include <imgui.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "app/desktop/charts/chart_export.h"
#include "app/desktop/window.h"
#include "app/desktop/workspace/launch_state.h"
#include "app/desktop/workspace/machines_state.h"
#include "app/host/environment.h"
#include "app/launch/ladder_file.h"
#include "storage/database/not_stored_now.h"
#include "storage/name_pattern.h"

namespace stepladder {
namespace {

constexpr std::size_t most_undoable = 100;

// Restores what was selected in this project when the window was open last.
void recall(Workspace& workspace, const DesktopSettings& settings) {
  workspace.line_styles = settings.line_styles;
  workspace.exports_folder = settings.exports_folder;
  const auto project = settings.projects.find(workspace.database);
  if (project == settings.projects.end()) return;
  Selection& selection = workspace.selection;
  selection.ladder = project->second.ladder;
  for (const RunId run : project->second.runs) {
    if (workspace.find(run)) selection.runs.insert(run);
  }
  for (const auto& [run, colour] : project->second.colours) {
    if (const RunId id = std::atoll(run.c_str()); workspace.find(id)) selection.colours[id] = std::max(colour, 0);
  }
}

}  // namespace

DesktopState::DesktopState(RunStore& run_store, Session* run_session, DesktopSettings read)
    : store(run_store),
      session(run_session),
      settings(std::move(read)),
      wake(session ? std::function<void()>(Window::wake) : [] {}),
      theme(settings, wake),
      curves(store, wake),
      exports(wake),
      trace_imports(wake),
      load(wake) {
  workspace.database = store.file().string();
  workspace.hardware = HardwareTable::load(assets_folder());
  workspace.launch->presets = saved_ladders();
  workspace.load(store);
  try {
    for (const Machine& machine : store.machines().machines())
      workspace.machines->list.push_back({.machine = machine, .lost_at = machine.lost_at, .why = machine.lost_why});
    workspace.machines->in_file = store.machines().machines_in_file();
  } catch (const StorageError& error) {  // the order book can't be read: everything else works
    messages.show_error(error.what());
  }
  if (session && !store.read_only()) machines = std::make_unique<MachineWatch>(store.file(), wake);
  for (const std::string& left : store.processes().left_behind()) messages.show_error(left);
  for (const std::string& problem : workspace.hardware.problems()) messages.show_error(problem);
  // A screenshot waits until everything is complete.
  workspace.patience = session ? std::chrono::milliseconds(4) : std::chrono::hours(1);
  recall(workspace, settings);
  panels.show_all(settings.panels);
  panels.use_layout(settings.layout);
  for (const Panel& panel : panels.all()) {
    const auto view = settings.views.find(panel.id);
    if (panel.recall && view != settings.views.end()) panel.recall(view->second);
  }
}

DesktopSettings DesktopState::current_settings() const {
  DesktopSettings now = settings;
  now.panels = panels.open();
  now.layout = ImGui::SaveIniSettingsToMemory();
  now.line_styles = workspace.line_styles;
  now.exports_folder = workspace.exports_folder;
  for (const Panel& panel : panels.all()) {
    if (panel.remember) now.views[panel.id] = panel.remember();
  }
  const Selection& selection = workspace.selection;
  ProjectView& project = now.projects[workspace.database];
  project = {.ladder = selection.ladder, .runs = {selection.runs.begin(), selection.runs.end()}};
  for (const auto& [run, colour] : selection.colours) project.colours[std::to_string(run)] = colour;
  project.panels = now.panels;
  project.layout = now.layout;
  project.views = now.views;
  return now;
}

bool DesktopState::can_train() {
  if (!session && store.read_only())
    messages.show_error(store.file().string() +
                        " is open for reading only: nothing can be trained, verified or continued in it.");
  return session != nullptr;
}

void DesktopState::require_measurable() const {
  if (const std::string why = workspace.why_not_measure(); !why.empty()) throw std::runtime_error(why);
}

const DeviceReport& DesktopState::device() const {
  if (!workspace.device) throw std::runtime_error("Stepladder is still detecting the hardware: try again in a moment.");
  return *workspace.device;
}

void DesktopState::can_undo(const std::string& what, std::function<void()> undo) {
  if (changes_.size() == most_undoable) changes_.erase(changes_.begin());
  changes_.push_back({what, std::move(undo)});
  workspace.undoable = what;
  messages.notice(what);
}

void DesktopState::undo_last() {
  if (changes_.empty()) return messages.notice("Nothing to undo");
  undo_at(changes_.size() - 1);
}

void DesktopState::undo(const std::string& what) {
  for (std::size_t i = changes_.size(); i-- > 0;)
    if (changes_[i].what == what) return undo_at(i);
  messages.notice("Nothing to undo");
}

void DesktopState::undo_at(std::size_t place) {
  const Change change = std::move(changes_[place]);
  changes_.erase(changes_.begin() + static_cast<std::ptrdiff_t>(place));
  const auto name_next = [this] { workspace.undoable = changes_.empty() ? "" : changes_.back().what; };
  name_next();
  try {
    change.undo();
  } catch (const NotStoredNow&) {  // it can be undone later
    changes_.insert(changes_.begin() + static_cast<std::ptrdiff_t>(place), change);
    name_next();
    throw;
  }
  const std::string first = change.what.substr(0, 1);
  messages.notice("Undone: " + lower_case(first) + change.what.substr(first.size()));
}

void DesktopState::forget_changes() {
  changes_.clear();
  workspace.undoable.clear();
}

void DesktopState::save(const std::string& name, const std::string& ending,
                        std::function<void(const std::filesystem::path&)> write) {
  const std::filesystem::path file = export_path(store.file(), workspace.exports_folder, name, ending);
  exports.add([this, file, write = std::move(write)](JobControl&) -> Then {
    write(file);
    return [this, file] { messages.file_notice(file); };
  });
  messages.wait_notice("Saving " + file.filename().string() + "...");
}

}  // namespace stepladder
