#include "app/bin.h"

#include <algorithm>
#include <sstream>

#include "app/format.h"
#include "engine/files/checkpoint_folder.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

// Runs whose rows are deleted and whose folders are not yet, so that a process killed in between leaves no orphaned
// folder.
constexpr const char* to_remove = "checkpoints_to_remove";

std::vector<RunId> ids_from(const std::string& text) {
  std::istringstream words(text);
  std::vector<RunId> ids;
  for (RunId id = 0; words >> id;) ids.push_back(id);
  return ids;
}

std::string text_of(const std::vector<RunId>& ids) {
  std::string text;
  for (const RunId id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
  return text;
}

// Counts files of the folder itself; links don't count, since removing them frees nothing.
std::int64_t bytes_in(const fs::path& folder) {
  std::int64_t bytes = 0;
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(folder, error))) return 0;
  for (auto entry = fs::recursive_directory_iterator(folder, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code unknown;
    if (!fs::is_regular_file(entry->symlink_status(unknown))) continue;
    if (const auto size = entry->file_size(unknown); !unknown) bytes += static_cast<std::int64_t>(size);
  }
  return bytes;
}

}  // namespace

std::vector<BinnedRun> runs_in_bin(RunStore& store) {
  std::vector<BinnedRun> binned;
  for (const auto& [id, curation] : store.curations()) {
    const std::optional<Run> run = curation.deleted() ? store.run(id) : std::nullopt;
    if (!run) continue;
    const std::int64_t bytes = store.file().empty() ? 0 : bytes_in(run_checkpoint_folder(store.file(), id));
    binned.push_back({*run, curation.deleted_at, bytes});
  }
  std::sort(binned.begin(), binned.end(),
            [](const BinnedRun& a, const BinnedRun& b) { return a.deleted_at < b.deleted_at; });
  return binned;
}

EmptiedBin empty_bin(RunStore& store, double deleted_before) {
  EmptiedBin emptied;
  std::vector<RunId> folders;
  store.in_one_transaction([&] {
    emptied.runs = store.empty_bin(deleted_before);
    folders = ids_from(store.setting(to_remove).value_or(""));
    if (emptied.runs.empty()) return;
    folders.insert(folders.end(), emptied.runs.begin(), emptied.runs.end());
    store.set_setting(to_remove, text_of(folders));
  });
  if (folders.empty() || store.file().empty()) return emptied;  // a database in memory has no folders beside it
  std::vector<RunId> left;
  for (const RunId id : folders) {
    if (store.run(id)) continue;  // never an existing run's folder
    const fs::path folder = run_checkpoint_folder(store.file(), id);
    const std::int64_t bytes = bytes_in(folder);
    std::error_code error;
    fs::remove_all(folder, error);  // links in it are removed, not followed
    emptied.freed_bytes += bytes - bytes_in(folder);
    if (!error) continue;
    left.push_back(id);
    emptied.problems.push_back(folder.string() + " cannot be removed: " + error.message());
  }
  store.set_setting(to_remove, text_of(left));
  return emptied;
}

std::string emptied_text(const EmptiedBin& emptied) {
  const std::string freed =
      emptied.freed_bytes > 0 ? bytes_text(static_cast<double>(emptied.freed_bytes)) + " of checkpoints freed" : "";
  if (emptied.runs.empty()) return freed.empty() ? "The bin was empty" : freed;
  return "Permanently deleted " + runs_text(emptied.runs.size()) + (freed.empty() ? "" : ", " + freed);
}

}  // namespace stepladder
