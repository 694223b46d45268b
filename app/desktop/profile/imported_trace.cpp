#include "app/desktop/profile/imported_trace.h"

#include "app/import/trace_import.h"
#include "storage/database/traces/trace_details.h"

namespace stepladder {
namespace {

struct Interrupted {};

}  // namespace

ImportedTrace import_trace(const std::filesystem::path& database, const std::string& file, JobControl& job) {
  const auto report = [&job](double share) {
    job.report(share);
    if (job.is_interrupted()) throw Interrupted();
  };
  try {
    const ReadTrace read = read_traces({.files = {file}}, report);
    report(1);
    RunStore store = RunStore::open(database);
    const std::optional<StoredTrace> known = store.traces().find_same(read.trace, read.process.profile);
    return {.id = known ? known->id : keep_trace(store.traces(), read.trace, read.process), .name = read.trace.name};
  } catch (const Interrupted&) {
    return {};
  }
}

}  // namespace stepladder
