#include "app/runs/open_store.h"

#include "app/exit_status.h"

namespace stepladder {

std::optional<RunStore> open_to_read(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return std::nullopt;
  try {
    RunStore store = RunStore::open(file);
    store.processes().close_dead_runs();
    return store;
  } catch (const MigrationError&) {
    throw;
  } catch (const StorageError&) {  // read-only, or damaged: then this throws the reason
    return RunStore::open(file, RunStore::Mode::read_only);
  }
}

RunStore open_existing(const std::filesystem::path& file) {
  auto store = open_to_read(file);
  if (!store)
    throw NotFound(
        file.string() + " does not exist: no run has been recorded yet",
        {.argument = "--db", .value = file.string(), .hint = "a training, an import or --db FILE gives one"});
  return std::move(*store);
}

}  // namespace stepladder
