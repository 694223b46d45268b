#include "app/desktop/profile/imported_trace.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "app/import/trace_import.h"
#include "app/process/run_program.h"
#include "storage/database/traces/trace_details.h"

namespace stepladder {
namespace {

struct Interrupted {};

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

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
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe");
  // In tests this program is another one beside it.
  const std::string program = (own.filename() == "stepladder" ? own : own.parent_path() / "stepladder").string();
  const ProgramResult traced =
      run_program({program, "--db", database.string(), "profile", "run", std::to_string(run), "--json"},
                  std::chrono::steady_clock::now() + std::chrono::hours(1), Afterwards::kill,
                  [&job] { return job.is_interrupted(); });
  if (job.is_interrupted()) return {};
  const nlohmann::json printed = nlohmann::json::parse(traced.output, nullptr, false);
  if (!traced.succeeded() || !printed.is_object() || !printed.contains("id")) {
    const std::string last = last_line(traced.errors);
    const nlohmann::json error = nlohmann::json::parse(last, nullptr, false);
    const bool is_told = error.is_object() && error.contains("error") && error["error"].contains("message");
    throw StorageError("Run " + std::to_string(run) +
                       " could not be traced: " + (is_told ? error["error"]["message"].get<std::string>() : last));
  }
  return {.id = printed["id"].get<std::int64_t>(), .name = printed.value("name", ""), .is_own = true};
}

}  // namespace stepladder
