// Carries out the commands of the view Profile, and keeps the traces that were imported.
#include "app/desktop/profile/profile_commands.h"

#include <filesystem>
#include <utility>

#include "app/desktop/desktop_state.h"
#include "app/desktop/panel_events.h"
#include "app/desktop/profile/profile_state.h"
#include "app/profile/example_traces.h"
#include "app/text/format.h"
#include "storage/database/traces/trace_details.h"
#include "storage/database/traces/trace_store.h"

namespace stepladder {

void reload_traces(DesktopState& desktop) {
  desktop.profiles.read_again();
  desktop.workspace.traces = desktop.store.traces().list();
}

void commands::execute(DesktopState& desktop, const ShowProfile& show) {
  desktop.profiles.ask(show.question);
}

void commands::execute(DesktopState& desktop, const ExplainSpeedup& explain) {
  desktop.panels.send("profile", {SpeedupToExplain{explain.before, explain.after}});
  desktop.workspace.profile_state->view.reset();  // the list of profiles may be old
  reload_traces(desktop);
  desktop.panels.show("profile");
}

void commands::execute(DesktopState& desktop, const ImportTraces& import) {
  if (desktop.workspace.database.empty()) throw std::runtime_error("There isn't a database to import into.");
  if (import.files.size() == 2) desktop.panels.send("profile", {PairToImport{}});
  // Each file is a trace of its own.
  for (const std::string& file : import.files)
    desktop.trace_imports.add(
        [database = desktop.workspace.database, file](JobControl& job) { return import_trace(database, file, job); },
        "Reading " + std::filesystem::path(file).filename().string());
}

void commands::execute(DesktopState& desktop, const ShowTrace& show) {
  desktop.panels.send("profile", {TraceToShow{show.trace}});
  desktop.workspace.profile_state->view.reset();
  reload_traces(desktop);
  desktop.panels.show("profile");
}

void commands::execute(DesktopState& desktop, const TraceRun& trace) {
  desktop.require_measurable();
  const RunEntry* run = desktop.workspace.find(trace.run);
  if (!run) return;
  desktop.trace_imports.add(
      [database = desktop.workspace.database, id = trace.run](JobControl& job) { return trace_run(database, id, job); },
      "Tracing run " + std::to_string(trace.run) + ", which trains a few of its steps again");
  desktop.panels.show("profile");
}

void commands::execute(DesktopState& desktop, const TimePasses&) {
  desktop.require_measurable();
  desktop.trace_imports.add(
      [database = desktop.workspace.database](JobControl& job) { return time_passes(database, job); },
      "Timing a model's forward and backward pass");
}

void commands::execute(DesktopState& desktop, const AttachTrace& attach) {
  const std::optional<StoredTrace> trace = desktop.store.traces().find(attach.trace);
  if (!trace) return;
  desktop.store.traces().attach(attach.trace, attach.run);
  reload_traces(desktop);
  desktop.can_undo(attach.run ? "Attached trace " + trace->name + " to run " + std::to_string(*attach.run)
                              : "Detached trace " + trace->name,
                   [&desktop, id = attach.trace, run = trace->run] {
                     desktop.store.traces().attach(id, run);
                     reload_traces(desktop);
                   });
}

void commands::execute(DesktopState& desktop, const OpenExampleTraces&) {
  const std::vector<std::string> files = example_traces();
  if (files.empty()) throw std::runtime_error("The example traces are missing beside the program.");
  commands::execute(desktop, ImportTraces{files});
  desktop.panels.send("profile", {PairToImport{.is_example = true}});
  desktop.panels.show("profile");
}

void commands::execute(DesktopState& desktop, const StopTraceImport&) {
  desktop.trace_imports.stop();
}

std::function<void()> remove_trace(DesktopState& desktop, TraceId id) {
  TraceStore traces = desktop.store.traces();
  const std::optional<StoredTrace> trace = traces.find(id);
  if (!trace) return {};  // another program was faster
  TracedProcess process{
      .profile = trace->profile, .anatomy = traces.details().anatomy(id), .kept = traces.details().kept(id)};
  traces.remove(id);
  reload_traces(desktop);
  return [&desktop, trace = *trace, process = std::move(process)] {
    keep_trace(desktop.store.traces(), trace, process);
    reload_traces(desktop);
  };
}

void commands::execute(DesktopState& desktop, const RemoveTrace& remove) {
  const std::optional<StoredTrace> trace = desktop.store.traces().find(remove.trace);
  if (auto back = remove_trace(desktop, remove.trace))
    desktop.can_undo("Removed trace " + trace->name, std::move(back));
}

void commands::execute(DesktopState& desktop, const RemovePasses& remove) {
  const std::optional<StoredPasses> passes = desktop.store.traces().passes().find(remove.passes);
  if (!passes) return;
  desktop.store.traces().passes().remove(remove.passes);
  reload_traces(desktop);
  desktop.can_undo("Removed passes " + passes->name, [&desktop, passes = *passes] {
    desktop.store.traces().passes().insert(passes);
    reload_traces(desktop);
  });
}

void take_trace(DesktopState& desktop) {
  std::optional<ImportedTrace> taken;
  try {
    taken = desktop.trace_imports.take();
  } catch (const std::exception& error) {  // StorageError: the file, or the disk
    desktop.messages.show_error(error.what());
  }
  ProfileState& shown = *desktop.workspace.profile_state;
  const JobProgress progress = desktop.trace_imports.progress();
  const std::size_t waiting = desktop.trace_imports.waiting();
  shown.reading = progress.item + (waiting > 0 ? " (" + std::to_string(waiting) + " more to read)" : "");
  shown.share = progress.share;
  if (taken && taken->is_passes) reload_traces(desktop);
  if (!taken || taken->id == 0) return;
  if (taken->is_own)
    desktop.panels.send("profile", {TraceToShow{taken->id}});
  else
    shown.imported.push_back(taken->id);
  if (!taken->owner.reason.empty() && taken->owner.run)
    desktop.messages.notice(taken->name + ": " + taken->owner.reason);
  reload_traces(desktop);
  if (!taken->is_new) {
    desktop.messages.notice("The project has " + taken->name + " already");
    return;
  }
  desktop.can_undo((taken->is_own ? "Traced " : "Imported trace ") + taken->name, [&desktop, id = taken->id] {
    desktop.store.traces().remove(id);
    reload_traces(desktop);
  });
}

}  // namespace stepladder
