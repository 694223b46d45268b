// Carries out the commands of the view Profile.
#include "app/desktop/desktop_app.h"
#include "app/format.h"
#include "storage/database/traces/pass_store.h"
#include "storage/database/traces/trace_details.h"

namespace stepladder {

void DesktopApp::execute(const ShowProfile& show) {
  profiles_.ask(show.question);
}

void DesktopApp::execute(const ExplainSpeedup& explain) {
  workspace_.explained = explain;
  ++workspace_.explanations;
  workspace_.profile_view.reset();  // the list of profiles may be old
  profiles_.read_again();
  show("profile");
}

void DesktopApp::execute(const ImportTraces& import) {
  if (workspace_.database.empty()) throw std::runtime_error("There isn't a database to import into.");
  // Each file is a trace of its own.
  for (const std::string& file : import.files)
    trace_imports_.add(
        [database = workspace_.database, file](JobControl& job) { return import_trace(database, file, job); },
        std::filesystem::path(file).filename().string());
}

void DesktopApp::execute(const StopTraceImport&) {
  trace_imports_.stop();
}

void DesktopApp::execute(const RemoveTrace& remove) {
  TraceStore traces = store_.traces();
  const std::optional<StoredTrace> trace = traces.find(remove.trace);
  if (!trace) return;  // another program was faster
  TracedProcess process{.profile = trace->profile,
                        .anatomy = traces.details().anatomy(remove.trace),
                        .kept = traces.details().kept(remove.trace)};
  traces.remove(remove.trace);
  profiles_.read_again();
  can_undo("Removed trace " + trace->name, [this, trace = *trace, process = std::move(process)] {
    keep_trace(store_.traces(), trace, process);
    profiles_.read_again();
  });
}

void DesktopApp::execute(const RemovePasses& remove) {
  const std::optional<StoredPasses> passes = store_.traces().passes().find(remove.passes);
  if (!passes) return;
  store_.traces().passes().remove(remove.passes);
  profiles_.read_again();
  can_undo("Removed passes " + passes->name, [this, passes = *passes] {
    store_.traces().passes().insert(passes);
    profiles_.read_again();
  });
}

void DesktopApp::take_trace() {
  std::optional<ImportedTrace> taken;
  try {
    taken = trace_imports_.take();
  } catch (const StorageError& error) {  // the file, or the disk
    complain(error.what());
  }
  const JobProgress progress = trace_imports_.progress();
  const std::size_t waiting = trace_imports_.waiting();
  workspace_.trace_import = progress.item + (waiting > 0 ? " (" + std::to_string(waiting) + " more to read)" : "");
  workspace_.trace_import_share = progress.share;
  if (!taken || taken->id == 0) return;
  workspace_.imported_trace = taken->id;
  profiles_.read_again();
  can_undo("Imported trace " + taken->name, [this, id = taken->id] {
    store_.traces().remove(id);
    profiles_.read_again();
  });
}

}  // namespace stepladder
