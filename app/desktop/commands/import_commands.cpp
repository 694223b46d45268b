// Reads files for the Import view, first for a preview, then into the database.
#include "app/desktop/commands/import_commands.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "app/desktop/desktop_state.h"
#include "app/desktop/profile/profile_commands.h"
#include "app/text/format.h"
#include "storage/traces/trace_file.h"

namespace stepladder {
namespace {

// Reads the files again if they are being read; what was read of them is dropped.
void start_import(DesktopState& desktop) {
  desktop.import_job.cancel();
  desktop.import_job.start([asked = desktop.workspace.import->asked, database = desktop.workspace.database,
                            keeps = desktop.workspace.import->state == ImportPreview::State::keeping](
                               JobControl& job) { return read_import(asked, database, keeps, job); },
                           desktop.wake);
}

// Shows the stored runs, and lets all of them be undone together.
void show_imported(DesktopState& desktop, const ImportPreview& import) {
  desktop.workspace.load(desktop.store);
  std::vector<RunId> runs;
  for (const ImportPreview::PreviewRun& imported : import.runs) runs.push_back(imported.run.id);
  if (runs.empty()) return;
  desktop.can_undo("Imported " + plural(std::ssize(runs), "run"), [&desktop, runs, number = import.number] {
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

std::string without_stop(std::string sentence) {
  if (sentence.ends_with('.')) sentence.pop_back();
  return sentence;
}

// The preview stays, so that its button tries again; if a part was stored, the rest is previewed.
void report_not_stored(DesktopState& desktop, const ImportPreview& import) {
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
  if (desktop.workspace.database.empty()) throw std::runtime_error("There isn't a database to import into.");
  desktop.workspace.import->state = ImportPreview::State::keeping;
  start_import(desktop);
}

void commands::execute(DesktopState& desktop, const ForgetImport&) {
  desktop.import_job.cancel();
  *desktop.workspace.import = {};
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
    commands::execute(desktop, ImportTraces{std::exchange(import.traces, {})});
    if (!is_kept) {
      import = {};
      desktop.panels.show("profile");
    }
  }
  if (is_kept) show_imported(desktop, *desktop.workspace.import);
}

}  // namespace stepladder
