// Carries out the commands of the view Profile.
#include "app/desktop/desktop_app.h"
#include "app/format.h"

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
  trace_import_.add(workspace_.database, import.files);
}

void DesktopApp::take_trace() {
  workspace_.trace_import = trace_import_.file();
  workspace_.trace_import_share = trace_import_.share();
  const std::optional<ImportedTrace> taken = trace_import_.take();
  if (!taken) return;
  workspace_.trace_import = trace_import_.file();
  if (!taken->problem.empty()) return complain(taken->problem);
  workspace_.imported_trace = taken->id;
  profiles_.read_again();
  can_undo("Imported trace " + taken->name, [this, id = taken->id] {
    store_.traces().remove(id);
    profiles_.read_again();
  });
}

}  // namespace stepladder
