// Reads files for the Import view, first for a preview, then into the database.
#include "app/desktop/commands/import_commands.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "app/desktop/commands/curation_commands.h"
#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/desktop_state.h"
#include "app/desktop/panel_events.h"
#include "app/desktop/profile/profile_commands.h"
#include "app/desktop/profile/profile_state.h"
#include "app/runs/examples.h"
#include "app/text/format.h"
#include "storage/traces/trace_file.h"

namespace stepladder {
namespace {

void refuse_if_read_only(const DesktopState& desktop) {
  if (!desktop.workspace.read_only.empty())
    throw std::runtime_error("The project is open for reading only, so nothing can be imported into it.");
}

// Reads the files again if they are being read; what was read of them is dropped.
void start_import(DesktopState& desktop) {
  desktop.import_job.cancel();
  desktop.import_job.start([asked = desktop.workspace.import->asked, database = desktop.workspace.database,
                            keeps = desktop.workspace.import->state == ImportPreview::State::keeping](
                               JobControl& job) { return read_import(asked, database, keeps, job); },
                           desktop.wake);
}

// The traces of these files that were imported by this window.
void remove_traces(DesktopState& desktop, const std::vector<std::string>& files) {
  if (files.empty()) return;
  const std::vector<std::int64_t>& imported = desktop.workspace.profile_state->imported;
  for (const StoredTrace& trace : desktop.store.traces().list())
    if (std::ranges::find(files, trace.source_path) != files.end() &&
        std::ranges::find(imported, trace.id) != imported.end())
      desktop.store.traces().remove(trace.id);
  reload_traces(desktop);
}

// Shows the stored runs, and lets all of them be undone together.
void show_imported(DesktopState& desktop, ImportPreview& import) {
  desktop.workspace.load(desktop.store);
  std::vector<RunId> runs;
  for (const ImportPreview::PreviewRun& imported : import.runs) runs.push_back(imported.run.id);
  if (runs.empty()) return;
  import.undo = "Imported " + contents_text(import);
  desktop.can_undo(import.undo, [&desktop, runs, number = import.number, traces = import.traces] {
    remove_traces(desktop, traces);
    desktop.store.in_one_transaction([&] {
      for (const RunId run : runs) {
        if (desktop.workspace.find(run))  // not deleted meanwhile
          desktop.store.curation().change(run, {.deleted_at = unix_now()});
      }
    });
    desktop.workspace.load(desktop.store);
    if (desktop.workspace.import->state == ImportPreview::State::kept && desktop.workspace.import->number == number)
      *desktop.workspace.import = {};
  });
}

// Shows the ladder, or the tries, of what was imported now or before.
void open_imported(DesktopState& desktop) {
  ImportPreview& import = *desktop.workspace.import;
  RunId first = 0;
  if (!import.runs.empty())
    first = import.runs.front().run.id;
  else if (!import.skipped.empty() && !import.skipped.front().runs.empty())
    first = import.skipped.front().runs.front();
  const RunEntry* entry = desktop.workspace.find(first);
  if (!entry || !entry->run.ladder) return desktop.panels.show("import");  // which says why
  if (desktop.workspace.kept_tries.contains(*entry->run.ladder)) {
    desktop.panels.send("tries", {TriesToShow{*entry->run.ladder}});
    desktop.panels.show("tries");
  } else {
    commands::execute(desktop, SelectLadder{*entry->run.ladder});
    for (const ExampleFile& example : example_files)
      if (example.rung >= 0 && entry->run.source_path == path_of(example))
        commands::execute(desktop, SelectRung{example.rung});
  }
  if (import.runs.empty()) import = {};
}

std::string without_stop(std::string sentence) {
  if (sentence.ends_with('.')) sentence.pop_back();
  return sentence;
}

// The preview stays, so that its button tries again; if a part was stored, the rest is previewed.
void report_not_stored(DesktopState& desktop, ImportPreview& import) {
  if (import.runs.empty()) {
    desktop.workspace.import->state = ImportPreview::State::understood;
    return desktop.messages.show_error("Nothing was imported: " + without_stop(import.not_stored) +
                                       ". The Import button tries again.");
  }
  show_imported(desktop, import);
  ImportQuestion rest = import.asked;
  rest.paths.erase(rest.paths.begin(), rest.paths.begin() + static_cast<std::ptrdiff_t>(import.paths_done));
  desktop.messages.show_error(
      "Only " + plural(std::ssize(import.runs), "run was", "runs were") +
      " imported: " + without_stop(import.not_stored) +
      (rest.paths.empty() ? "." : ". The Import view has the rest, and its button tries again."));
  if (!rest.paths.empty()) return commands::execute(desktop, PreviewImport{rest});
  *desktop.workspace.import = {};
}

}  // namespace

void commands::execute(DesktopState& desktop, const PreviewImport& preview) {
  const auto is_trace = [](const std::string& file) { return looks_like_trace(file); };
  const std::vector<std::string>& paths = preview.question.paths;
  if (!paths.empty() && std::ranges::all_of(paths, is_trace)) {
    commands::execute(desktop, ImportTraces{paths});
    return desktop.panels.show("profile");
  }
  *desktop.workspace.import = {.state = ImportPreview::State::reading, .asked = preview.question};
  start_import(desktop);
}

void commands::execute(DesktopState& desktop, const KeepImport&) {
  refuse_if_read_only(desktop);
  if (desktop.workspace.database.empty()) throw std::runtime_error("There isn't a database to import into.");
  desktop.workspace.import->state = ImportPreview::State::keeping;
  start_import(desktop);
}

void commands::execute(DesktopState& desktop, const ForgetImport&) {
  desktop.import_job.cancel();
  *desktop.workspace.import = {};
}

void commands::execute(DesktopState& desktop, const UndoImport&) {
  desktop.undo(desktop.workspace.import->undo);
}

void commands::execute(DesktopState& desktop, const OpenExample& example) {
  if (desktop.workspace.import->is_reading()) throw std::runtime_error("Another import is being read.");
  refuse_if_read_only(desktop);
  *desktop.workspace.import = {
      .asked = {.paths = {example.path}, .options = {.hardware = example.gpu}, .opens_it = true}};
  commands::execute(desktop, KeepImport{});
  desktop.panels.show("import");  // its progress, and its Cancel
}

void commands::execute(DesktopState& desktop, const RemoveExamples&) {
  Curate curate{.what = "Removed the examples", .runs = {}, .change = {.deleted_at = unix_now()}};
  for (const RunEntry& entry : desktop.workspace.runs())
    if (is_example(entry.run)) curate.runs.push_back(entry.run.id);
  std::vector<std::function<void()>> back;
  for (const StoredTrace& trace : desktop.store.traces().list())
    if (is_example_file(trace.source_path)) back.push_back(remove_trace(desktop, trace.id));
  back.push_back(curate_runs(desktop, curate));
  desktop.can_undo(curate.what, [back = std::move(back)] {
    for (const auto& undo : back)
      if (undo) undo();
  });
}

// The result of a preview or an import. All runs of an import can be undone together.
void take_import(DesktopState& desktop) {
  if (desktop.import_job.is_active()) desktop.workspace.import->progress = desktop.import_job.progress();
  std::optional<ImportPreview> read = desktop.import_job.take();
  if (!read) return;
  read->number = ++desktop.imports_read;
  if (!read->not_stored.empty()) return report_not_stored(desktop, *read);
  *desktop.workspace.import = std::move(*read);
  const bool is_kept = desktop.workspace.import->state == ImportPreview::State::kept;
  if (ImportPreview& import = *desktop.workspace.import;
      !import.traces.empty() && (is_kept || (import.runs.empty() && import.tables == 0))) {
    commands::execute(desktop, ImportTraces{import.traces});
    if (!is_kept) {
      import = {};
      desktop.panels.show("profile");
    }
  }
  if (!is_kept) return;
  show_imported(desktop, *desktop.workspace.import);
  if (!desktop.workspace.import->asked.opens_it) return;
  if (desktop.panels.is_open("import")) return open_imported(desktop);
  desktop.messages.notice(desktop.workspace.import->undo + "; Ladder and Tries show it.");  // the user looks elsewhere
}

}  // namespace stepladder
