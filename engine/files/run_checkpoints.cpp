// Names, saves, prunes and removes a run's checkpoint folders. A folder is renamed and the new name synced before its
// files are deleted, so a crash leaves a whole checkpoint or a leftover, which remove_checkpoint_leftovers deletes.
// Each change uses a descriptor of the run's own folder, never a link.
#include "engine/files/run_checkpoints.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "engine/files/files.h"
#include "storage/errors.h"
#include "storage/own_folder.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t digits_in_names = 8;
constexpr std::size_t most_files = 1000;  // of a checkpoint

fs::path checkpoints_root(const fs::path& database) {
  return fs::absolute(database.string() + ".checkpoints");
}

// Skips anything but digits, since a uid may be from a stranger's file.
std::string uid_digits_of(const CheckpointOwner& owner) {
  std::string digits;
  for (const char c : owner.uid)
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')) digits += c;
  return digits;
}

// The part of the uid that names have.
std::string tag_of(const CheckpointOwner& owner) {
  std::string tag = uid_digits_of(owner);
  if (tag.empty() && !is_missing(owner.created_at)) tag = std::to_string(static_cast<std::int64_t>(owner.created_at));
  return tag.substr(0, std::max(digits_in_names, owner.uid.empty() ? tag.size() : 0));
}

fs::path plain_folder(const CheckpointOwner& owner) {
  if (!owner.shared_folder.empty()) return fs::absolute(owner.shared_folder) / ("run-" + uid_digits_of(owner));
  return checkpoints_root(owner.database) / ("run-" + std::to_string(owner.run));
}
fs::path own_folder(const CheckpointOwner& owner) {
  return plain_folder(owner).string() + "-" + tag_of(owner);
}

bool is_younger(const fs::path& file, double at) {
  struct stat status;
  if (::stat(file.c_str(), &status) != 0) return false;
  const double changed =
      static_cast<double>(status.st_mtim.tv_sec) + 1e-9 * static_cast<double>(status.st_mtim.tv_nsec);
  return !(changed < at);
}

enum class Whose { own, foreign, unknown };

Whose whose(const fs::path& checkpoint, const CheckpointOwner& owner) {
  try {
    const CheckpointState state = verified_state(checkpoint);
    if (state.uid != owner.uid) return Whose::foreign;
    const bool known = !owner.uid.empty() || is_younger(checkpoint / checkpoint_state, owner.created_at);
    return known ? Whose::own : Whose::foreign;
  } catch (const DataError&) {
    return Whose::unknown;
  }
}

// The contents of one of the two folders that a run may have.
struct Contents {
  bool exists = false;
  bool readable = true;  // and a real folder
  bool foreign = false;  // has a checkpoint of another run
  std::vector<Checkpoint> own;
  std::vector<Checkpoint> unknown;  // damaged, so that nobody can say whose they are

  bool usable() const { return readable && !foreign && (unknown.empty() || !own.empty()); }
};

Contents look_into(const fs::path& folder, const CheckpointOwner& owner) {
  Contents contents;
  std::error_code error;
  const fs::file_status status = fs::symlink_status(folder, error);
  contents.exists = status.type() != fs::file_type::not_found;
  if (!contents.exists) return contents;
  contents.readable = fs::is_directory(status);
  if (!contents.readable) return contents;
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const auto step = step_of_checkpoint(entry->path().filename().string());
    std::error_code unknown_type;
    if (!step || !fs::is_directory(entry->symlink_status(unknown_type))) continue;
    const Checkpoint checkpoint{*step, entry->path()};
    const Whose found = whose(checkpoint.folder, owner);
    contents.foreign |= found == Whose::foreign;
    if (found == Whose::own) contents.own.push_back(checkpoint);
    if (found == Whose::unknown) contents.unknown.push_back(checkpoint);
  }
  contents.readable = !error;
  return contents;
}

void sort_by_step(std::vector<Checkpoint>& checkpoints) {
  std::ranges::sort(checkpoints, {}, &Checkpoint::step);
}

std::string temporary_name(const std::string& checkpoint, const CheckpointOwner& owner, const char* ending) {
  return checkpoint + "." + tag_of(owner) + ending;
}

// The run's folder, to change names in it; empty if there is none, or it is a link. Throws DataError if the folder
// above it, which we made, has become a link: then it's somebody else's, and nothing there is ours to remove.
Descriptor open_to_change(const fs::path& run_folder, bool makes = false) {
  const fs::path root = run_folder.parent_path();
  if (makes) make_private_folders(root.parent_path());
  const Descriptor top = makes ? make_own_folder(root) : open_own_folder(root);
  const int error = top ? 0 : errno;
  if (error == ENOENT) return Descriptor();
  if (error != 0 && (error == EPERM || fs::is_symlink(root)))
    throw DataError(root.string() + " is a link, or isn't yours: checkpoints are neither saved nor removed there");
  if (error != 0) throw DataError(root.string() + " cannot be used: " + std::strerror(error));
  const std::string name = run_folder.filename().string();
  return makes ? make_folder_below(top.get(), name) : folder_below(top.get(), name);
}

void remove_in(const Descriptor& folder, const std::string& name) {
  if (!remove_tree(folder.get(), name)) throw DataError(name + " could not be removed: " + std::strerror(errno));
}

// Renames the checkpoint, so that it no longer counts; permanent once the folder is synced. Returns the new name.
std::string take_name(const Descriptor& folder, const Checkpoint& checkpoint, const CheckpointOwner& owner) {
  const std::string name = checkpoint.folder.filename().string();
  const std::string removed = temporary_name(name, owner, ".removed");
  remove_in(folder, removed);
  if (::renameat(folder.get(), name.c_str(), folder.get(), removed.c_str()) != 0)
    throw DataError(name + " could not be renamed: " + std::strerror(errno));
  return removed;
}

// Keeps the newest `keep` checkpoints up to `step` (0: all of them). Removes all later ones: they are of an attempt
// that couldn't be resumed from them.
void prune(const fs::path& run_folder, const CheckpointOwner& owner, std::int64_t step, int keep) {
  std::vector<Checkpoint> saved = look_into(run_folder, owner).own;
  const Descriptor folder = open_to_change(run_folder);
  if (!folder) return;
  sort_by_step(saved);
  const auto up_to_step =
      std::ranges::count_if(saved, [&](const Checkpoint& checkpoint) { return checkpoint.step <= step; });
  std::vector<std::string> removed;
  for (std::ptrdiff_t i = 0; i < std::ssize(saved); ++i)
    if (i >= up_to_step || (keep > 0 && i < up_to_step - keep))
      removed.push_back(take_name(folder, saved[static_cast<std::size_t>(i)], owner));
  if (removed.empty()) return;
  sync_folder(run_folder);
  for (const std::string& name : removed) remove_in(folder, name);
}

// The run's folders that were written or deleted only in part.
std::vector<fs::path> leftovers_in(const fs::path& folder, const CheckpointOwner& owner) {
  std::vector<fs::path> found;
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(folder, error))) return found;
  const std::string tag = "." + tag_of(owner);
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool own = name.ends_with(tag + ".part") || name.ends_with(tag + ".removed");
    // Names without a uid, from older versions, belong to runs without a uid.
    const bool old =
        owner.uid.empty() && name.ends_with(".part") && step_of_checkpoint(name.substr(0, name.size() - 5));
    if (name.starts_with("step-") && (own || old)) found.push_back(entry->path());
  }
  return found;
}

std::int64_t bytes_in(const fs::path& folder) {
  std::int64_t bytes = 0;
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(folder, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code unknown;
    if (!fs::is_regular_file(entry->symlink_status(unknown))) continue;
    if (const auto size = entry->file_size(unknown); !unknown) bytes += static_cast<std::int64_t>(size);
  }
  return bytes;
}

// The checkpoints that are removed together with the run.
std::vector<Checkpoint> removable_in(const fs::path& folder, const CheckpointOwner& owner) {
  Contents contents = look_into(folder, owner);
  if (contents.usable())  // then damaged ones are the run's too
    contents.own.insert(contents.own.end(), contents.unknown.begin(), contents.unknown.end());
  return contents.own;
}

std::string steps_text(const std::vector<Checkpoint>& checkpoints) {
  std::string steps;
  for (const Checkpoint& checkpoint : checkpoints)
    steps += (steps.empty() ? "" : ", ") + std::to_string(checkpoint.step);
  return steps;
}

}  // namespace

CheckpointOwner checkpoint_owner(const fs::path& database, const Run& run) {
  return {.database = database, .run = run.id, .uid = run.uid, .created_at = run.created_at};
}

fs::path run_checkpoint_folder(const CheckpointOwner& owner) {
  const fs::path plain = plain_folder(owner), own = own_folder(owner);
  return fs::exists(own) || !look_into(plain, owner).usable() ? own : plain;
}

std::vector<Checkpoint> run_checkpoints(const CheckpointOwner& owner) {
  if (owner.database.empty()) return {};
  std::vector<Checkpoint> found;
  for (const fs::path& folder : {plain_folder(owner), own_folder(owner)}) {
    const Contents contents = look_into(folder, owner);
    found.insert(found.end(), contents.own.begin(), contents.own.end());
    if (!contents.foreign) found.insert(found.end(), contents.unknown.begin(), contents.unknown.end());
  }
  sort_by_step(found);
  return found;
}

ChosenCheckpoint choose_checkpoint(const CheckpointOwner& owner, std::optional<std::int64_t> step,
                                   const std::function<std::string(std::int64_t)>& why_not) {
  const std::string name = "run " + std::to_string(owner.run);
  std::vector<Checkpoint> saved = run_checkpoints(owner);
  if (saved.empty()) {
    const fs::path plain = plain_folder(owner);
    const bool others = look_into(plain, owner).foreign;
    throw DataError(name + " has no checkpoint" + (others ? "; those in " : " in ") + plain.string() +
                    (others ? " are another run's" : ""));
  }
  const std::string steps = steps_text(saved);
  if (step) std::erase_if(saved, [&](const Checkpoint& checkpoint) { return checkpoint.step != *step; });
  if (saved.empty())
    throw DataError(name + " has no checkpoint of step " + std::to_string(*step) + "; it has: " + steps);
  ChosenCheckpoint chosen;
  for (auto checkpoint = saved.rbegin(); checkpoint != saved.rend(); ++checkpoint) {
    std::string why = why_not ? why_not(checkpoint->step) : "";
    try {
      if (why.empty()) verify_checkpoint(checkpoint->folder);
      if (why.empty() && read_checkpoint_state(checkpoint->folder).step != checkpoint->step)
        why = checkpoint->folder.string() + " is damaged: its state.json has another step";
    } catch (const DataError& error) {
      why = error.what();
    }
    if (why.empty()) {
      chosen.checkpoint = *checkpoint;
      return chosen;
    }
    chosen.passed_over.push_back("the checkpoint of step " + std::to_string(checkpoint->step) + " is not used: " + why);
  }
  std::string all;
  for (const std::string& sentence : chosen.passed_over) all += (all.empty() ? "" : "; ") + sentence;
  throw DataError(name + " has no usable checkpoint: " + all + (step ? "; it has: " + steps : ""));
}

fs::path save_checkpoint(const CheckpointOwner& owner, std::int64_t step, int keep,
                         const std::function<void(const fs::path&)>& write,
                         const std::function<std::string()>& store_steps) {
  const fs::path run_folder = run_checkpoint_folder(owner);
  const std::string name = checkpoint_name(step), part_name = temporary_name(name, owner, ".part");
  const fs::path folder = run_folder / name, part = run_folder / part_name;
  const Descriptor opened = open_to_change(run_folder, true);
  if (!opened) throw DataError(run_folder.string() + " cannot be used: " + std::strerror(errno));
  try {
    remove_checkpoint_leftovers(owner);
    const Descriptor filled = make_folder_below(opened.get(), part_name);
    if (!filled) throw DataError(part.string() + " can't be made: " + std::strerror(errno));
    write(part);
    const std::string checksums = checkpoint_checksums_of(part);
    OutputFile file(part / checkpoint_checksums);
    file.write(std::as_bytes(std::span(checksums)));
    file.commit();
    for (const fs::path& made : {part, run_folder, run_folder.parent_path(), run_folder.parent_path().parent_path()})
      sync_folder(made);
    if (store_steps) {
      if (const std::string why = store_steps(); !why.empty()) throw DataError(why);
    }
    for (const std::string& each : names_in(filled.get(), most_files)) ::fchmodat(filled.get(), each.c_str(), 0600, 0);
    std::optional<std::string> replaced;  // of an earlier attempt at the same step
    if (fs::exists(fs::symlink_status(folder))) {
      replaced = take_name(opened, {step, folder}, owner);
      sync_folder(run_folder);
    }
    if (::renameat(opened.get(), part_name.c_str(), opened.get(), name.c_str()) != 0)
      throw DataError(part.string() + " could not be renamed: " + std::strerror(errno));
    sync_folder(run_folder);
    if (replaced) remove_in(opened, *replaced);
  } catch (...) {
    remove_tree(opened.get(), part_name);
    throw;
  }
  try {
    prune(run_folder, owner, step, keep);
  } catch (const std::exception&) {
    // The next save tries again; this checkpoint is saved.
  }
  return folder;
}

void remove_checkpoint_leftovers(const CheckpointOwner& owner) {
  if (owner.database.empty()) return;
  for (const fs::path& folder : {plain_folder(owner), own_folder(owner)}) {
    const std::vector<fs::path> found = leftovers_in(folder, owner);
    if (found.empty()) continue;
    try {
      const Descriptor opened = open_to_change(folder);
      for (const fs::path& left : found) remove_tree(opened.get(), left.filename().string());
    } catch (const DataError&) {  // a link: not ours
    }
  }
}

std::int64_t checkpoint_bytes(const CheckpointOwner& owner) {
  if (owner.database.empty()) return 0;
  std::int64_t bytes = 0;
  for (const fs::path& folder : {plain_folder(owner), own_folder(owner)}) {
    for (const Checkpoint& checkpoint : removable_in(folder, owner)) bytes += bytes_in(checkpoint.folder);
    for (const fs::path& left : leftovers_in(folder, owner)) bytes += bytes_in(left);
  }
  return bytes;
}

std::string remove_run_checkpoints(const CheckpointOwner& owner) {
  if (owner.database.empty()) return "";
  try {
    for (const fs::path& folder : {plain_folder(owner), own_folder(owner)}) {
      const std::vector<Checkpoint> own = removable_in(folder, owner);
      const bool is_folder = fs::is_directory(fs::symlink_status(folder));
      if (own.empty() && leftovers_in(folder, owner).empty() && !(is_folder && fs::is_empty(folder))) continue;
      const Descriptor opened = open_to_change(folder);
      if (!opened) continue;
      for (const Checkpoint& checkpoint : own) take_name(opened, checkpoint, owner);
      const std::vector<fs::path> removed = leftovers_in(folder, owner);
      if (!removed.empty()) sync_folder(folder);
      for (const fs::path& left : removed) remove_in(opened, left.filename().string());
      if (fs::is_empty(folder)) fs::remove(folder);
    }
  } catch (const std::exception& error) {
    return error_text(error);
  }
  return "";
}

std::vector<RunId> runs_with_checkpoint_folders(const fs::path& database) {
  std::vector<RunId> runs;
  std::error_code error;
  for (auto entry = fs::directory_iterator(checkpoints_root(database), error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    constexpr std::string_view prefix = "run-";
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    RunId run = 0;
    const auto [end, wrong] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), run);
    if (wrong == std::errc() && (end == name.data() + name.size() || *end == '-')) runs.push_back(run);
  }
  std::ranges::sort(runs);
  runs.erase(std::unique(runs.begin(), runs.end()), runs.end());
  return runs;
}

}  // namespace stepladder
