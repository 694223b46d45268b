// Empties the bin for the window and `stepladder bin`. The owners of checkpoints are noted in the database in the
// transaction that hides the runs, and leave that note once their folders are removed: a killed process leaves nothing
// behind. A folder whose run exists is never removed.
#include "app/runs/bin.h"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <sstream>

#include "app/text/format.h"
#include "engine/files/run_checkpoints.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

// Runs whose rows are deleted and whose checkpoints are not yet, so that a process killed in between leaves none
// behind: "ID/UID/CREATED_AT" for each, only "ID" in older files.
constexpr const char* to_remove = "checkpoints_to_remove";

std::vector<CheckpointOwner> owners_from(const std::string& text, const fs::path& database) {
  std::istringstream words(text);
  std::vector<CheckpointOwner> owners;
  for (std::string word; words >> word;) {
    std::istringstream parts(word);
    CheckpointOwner owner{.database = database};
    std::string created_at;
    if (!(parts >> owner.run)) continue;
    parts.get();
    std::getline(parts, owner.uid, '/');
    if (std::getline(parts, created_at)) owner.created_at = std::strtod(created_at.c_str(), nullptr);
    owners.push_back(std::move(owner));
  }
  return owners;
}

std::string text_of(const std::vector<CheckpointOwner>& owners) {
  std::ostringstream text;
  text.precision(17);
  for (const CheckpointOwner& owner : owners) {
    text << owner.run << "/" << owner.uid << "/";
    if (!is_missing(owner.created_at)) text << owner.created_at;
    text << " ";
  }
  return text.str();
}

}  // namespace

std::vector<BinnedRun> runs_in_bin(RunStore& store) {
  std::vector<BinnedRun> binned;
  for (const auto& [id, curation] : store.curation().all()) {
    const std::optional<Run> run = curation.deleted() ? store.run(id) : std::nullopt;
    if (!run) continue;
    binned.push_back({*run, curation.deleted_at, checkpoint_bytes(checkpoint_owner(store.file(), *run))});
  }
  std::ranges::sort(binned, {}, &BinnedRun::deleted_at);
  return binned;
}

EmptiedBin empty_bin(RunStore& store, double deleted_before, const KeepDeleting& keep_deleting) {
  EmptiedBin emptied{.finished = store.bin().left_to_delete(), .before = store.upkeep().space()};
  const auto note_checkpoints = [&](std::span<const Run> runs) {
    std::vector<CheckpointOwner> all = owners_from(store.settings().get(to_remove).value_or(""), store.file());
    for (const Run& run : runs) all.push_back(checkpoint_owner(store.file(), run));
    store.settings().set(to_remove, text_of(all));
  };
  emptied.runs = store.bin().empty(deleted_before, note_checkpoints, keep_deleting);
  emptied.after = store.upkeep().space();
  const std::vector<CheckpointOwner> owners = owners_from(store.settings().get(to_remove).value_or(""), store.file());
  if (owners.empty() || store.file().empty()) return emptied;  // a database in memory has no folders beside it
  std::vector<CheckpointOwner> left;
  for (const CheckpointOwner& owner : owners) {
    if (store.run(owner.run)) continue;  // never an existing run's folder
    const std::int64_t bytes = checkpoint_bytes(owner);
    const std::string problem = remove_run_checkpoints(owner);
    emptied.freed_bytes += bytes - checkpoint_bytes(owner);
    if (problem.empty()) continue;
    left.push_back(owner);
    emptied.problems.push_back(problem);
  }
  store.settings().set(to_remove, text_of(left));
  return emptied;
}

std::string emptied_text(const EmptiedBin& emptied) {
  const std::string freed =
      emptied.freed_bytes > 0 ? bytes_text(static_cast<double>(emptied.freed_bytes)) + " of checkpoints freed" : "";
  const std::size_t runs = emptied.runs.size() + emptied.finished;
  if (runs == 0) return freed.empty() ? "The bin was empty" : freed;
  return "Permanently deleted " + plural(runs, "run") + (freed.empty() ? "" : ", " + freed);
}

std::string space_text(const fs::path& file, const EmptiedBin& emptied) {
  constexpr std::int64_t worth_saying = 1 << 20;
  const FileSpace& now = emptied.after;
  const auto size = [](std::int64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  const std::string had = size(emptied.before.file_bytes), has = size(now.file_bytes);
  std::string text = file.string() + " has " + has + (has == had ? ", as before" : " now; it had " + had);
  if (now.file_bytes - now.content_bytes > worth_saying)
    text += ". It shrinks to " + size(now.content_bytes) + " when other programs no longer read it";
  if (now.free_bytes > worth_saying)
    text += ". " + size(now.free_bytes) +
            " of it are unused, and new runs use them first; `stepladder doctor --compact` "
            "makes the file smaller";
  return text;
}

}  // namespace stepladder
