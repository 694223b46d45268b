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

// The preview stays, so that its button tries again once there is room. Files that were stored before the failure are
// in the project; the next attempt skips them.
void report_not_stored(DesktopState& desktop, const std::string& why) {
  desktop.workspace.import->state = ImportPreview::State::understood;
  const std::size_t before = desktop.workspace.runs().size();
  desktop.workspace.load(desktop.store);
  const std::size_t stored = desktop.workspace.runs().size() - before;
  desktop.messages.show_error(
      (stored == 0 ? "Nothing was imported: " : "Only " + plural(stored, "run") + " of them could be imported: ") +
      why + ". Press Import again once it can be written.");
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
  if (!read->not_stored.empty()) return report_not_stored(desktop, read->not_stored);
  read->number = ++desktop.imports_read;
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
  if (!is_kept) return;
  desktop.workspace.load(desktop.store);
  std::vector<RunId> runs;
  for (const ImportPreview::PreviewRun& imported : desktop.workspace.import->runs) runs.push_back(imported.run.id);
  if (runs.empty()) return;
  desktop.can_undo(
      "Imported " + plural(std::ssize(runs), "run"), [&desktop, runs, number = desktop.workspace.import->number] {
        desktop.store.in_one_transaction([&] {
          for (const RunId run : runs) {
            const RunEntry* entry = desktop.workspace.find(run);
            if (!entry) continue;  // deleted meanwhile
            Curation curation = entry->curation;
            curation.deleted_at = unix_now();
            desktop.store.curation().set(run, curation);
          }
        });
        desktop.workspace.load(desktop.store);
        if (desktop.workspace.import->state == ImportPreview::State::kept && desktop.workspace.import->number == number)
          *desktop.workspace.import = {};
      });
}

}  // namespace stepladder
