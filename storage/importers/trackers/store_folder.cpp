#include "storage/importers/trackers/store_folder.h"

#include "storage/importers/journal/journal.h"

namespace stepladder {
namespace fs = std::filesystem;

bool is_store_folder(const fs::path& folder) {
  return !store_format(folder).empty();
}

std::string_view store_format(const fs::path& folder) {
  if (!journals_in(folder).empty()) return "journal";
  if (is_mlflow_folder(folder)) return "mlflow";
  if (!wandb_files_in(folder).empty()) return "wandb";
  return !event_files_in(folder).empty() || !event_folders_in(folder).empty() ? "tensorboard" : "";
}

void read_store_folder(const fs::path& folder, const ImportOptions& options, ImportSink& sink) {
  if (!journals_in(folder).empty()) return read_journal_folder(folder, sink);
  if (is_mlflow_folder(folder)) return read_mlflow_folder(folder, sink);
  if (!wandb_files_in(folder).empty()) return read_wandb_folder(folder, options, sink);
  if (event_folders_in(folder).size() > 1) return read_event_folders(folder, sink);
  if (!event_files_in(folder).empty()) return read_event_folder(folder, sink);
  read_event_folders(folder, sink);
}

}  // namespace stepladder
