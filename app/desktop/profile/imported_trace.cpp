#include "app/desktop/profile/imported_trace.h"

#include <nlohmann/json.hpp>

#include "app/desktop/own_program.h"
#include "app/import/trace_import.h"
#include "storage/database/traces/trace_details.h"
#include "storage/errors.h"

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
    ImportedTrace imported{.id = known ? known->id : keep_trace(store.traces(), read.trace, read.process),
                           .name = read.trace.name,
                           .is_new = !known};
    if (std::optional<StoredTrace> kept = store.traces().find(imported.id); kept && !known)
      imported.owner = attach_to_owner(store, *kept);
    return imported;
  } catch (const Interrupted&) {
    return {};
  }
}

ImportedTrace trace_run(const std::filesystem::path& database, RunId run, JobControl& job) {
  const std::string id = std::to_string(run);
  const nlohmann::json printed =
      run_own_program(database, {"profile", "run", id}, "Run " + id + " could not be traced", job);
  return printed.is_object() ? traced_run(printed, run) : ImportedTrace{};
}

ImportedTrace traced_run(const nlohmann::json& answer, RunId run) {
  const auto id = answer.find("id");
  if (id == answer.end() || !id->is_number_integer())
    throw StorageError("Run " + std::to_string(run) +
                       " was traced, but the answer names no trace. Look for it in Profile, or trace the run again.");
  const auto name = answer.find("name");
  return {.id = *id, .name = name != answer.end() && name->is_string() ? *name : "", .is_own = true};
}

ImportedTrace time_passes(const std::filesystem::path& database, JobControl& job) {
  const nlohmann::json printed = run_own_program(database, {"profile"}, "The passes could not be timed", job);
  return {.is_own = true, .is_passes = printed.is_object()};
}

}  // namespace stepladder
