// States of a checkout as git trees. The store's own index remembers which files haven't changed, so taking a state of
// a large checkout costs one look at each file. Hooks, filters and the repository's own settings start nothing
// (app/host/git.h).
#include "app/record/try_trees.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <set>

#include "app/exit_status.h"
#include "app/host/held_folder.h"
#include "engine/files/files.h"
#include "storage/content_hash.h"
#include "storage/errors.h"
#include "storage/regular_file.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

constexpr std::array written_by_runs = {"__pycache__", "build",      "dist",        "target",    "out",
                                        "output",      "outputs",    "runs",        "logs",      "wandb",
                                        "checkpoints", "stepladder", "results.tsv", "CMakeFiles"};

constexpr const char* leftovers_file = "leftovers";  // beside the copies; what the first state's runs left

bool is_written_by_runs(const fs::path& path) {
  const std::string name = path.filename().string();
  const auto ends = [&](const char* end) { return name.ends_with(end); };
  return std::ranges::find(written_by_runs, name) != written_by_runs.end() || name.starts_with("build-") ||
         name.starts_with("cmake-build") || ends(".pyc") || ends(".o") || ends(".log") || ends("_cache");
}

// Every regular file below the path, or the path itself; links are named, not followed.
template <class Use>
void for_files(const fs::path& path, const Use& use) {
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(path, error))) return use(path);
  std::set<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(path, error)) {
    std::error_code of_entry;
    if (entry.is_symlink(of_entry) || !entry.is_directory(of_entry)) files.insert(entry.path());
  }
  if (error) throw StorageError(path.string() + " cannot be read: " + error.message());
  for (const fs::path& file : files) use(file);
}

std::vector<std::string> left_in(const fs::path& copy) {
  return entries_of(GitCheckout(copy, GitCheckout::Ours{}).git({"ls-files", "--others", "-z"}));
}

// A checkpoint of an earlier run must not start the next one. Caches of compilers and Python only save time. `known`
// names the files that may stay; if it doesn't exist, all caches do. What can't be removed stays.
void remove_leftovers(const fs::path& copy, const fs::path& known) {
  std::vector<std::string> clean{"clean", "-ffdxq"};
  for (const char* const cache : {"__pycache__", "build", "build-*", "cmake-build*", "target", "CMakeFiles", "*.pyc",
                                  "*.o", "*.egg-info", "*_cache"}) {
    clean.emplace_back("-e");
    clean.emplace_back(cache);
  }
  try {
    GitCheckout(copy, GitCheckout::Ours{}).git(clean);
    const auto text = text_of(known);
    if (!text) return;
    const std::vector<std::string> names = entries_of(*text);
    const std::set<std::string> stay(names.begin(), names.end());
    std::error_code error;
    for (const std::string& file : left_in(copy)) {
      if (stay.contains(file)) continue;
      const bool is_repository = file.ends_with('/');  // the slash would lead through a link
      fs::remove_all(copy / file.substr(0, file.size() - (is_repository ? 1 : 0)), error);
    }
  } catch (const StorageError&) {  // files of another user
  }
}

const char* under_way(const fs::path& repository) {
  std::error_code error;
  for (const auto& [file, what] : {std::pair{"MERGE_HEAD", "merge"},
                                   {"rebase-merge", "rebase"},
                                   {"rebase-apply", "rebase"},
                                   {"CHERRY_PICK_HEAD", "cherry-pick"},
                                   {"REVERT_HEAD", "revert"}})
    if (fs::exists(fs::symlink_status(repository / file, error))) return what;
  return nullptr;
}

}  // namespace

TryTrees::TryTrees(const fs::path& checkout, fs::path folder) : checkout_(checkout), folder_(std::move(folder)) {
  require_settled();
  const fs::path store = folder_ / "store", part = folder_ / "store.part";
  std::error_code error;
  if (!fs::exists(store / ".git" / "HEAD", error)) {
    fs::remove_all(part, error);
    checkout_.share_objects_with(part);
    make_folder(part / ".git" / "info");
    write_whole(part / ".git" / "index", "", private_file);
    fs::remove(part / ".git" / "index", error);
    fs::rename(part, store);
  }
  // It may have changed since.
  const std::string excluded = text_of(checkout_.shared_repository() / "info" / "exclude").value_or("");
  if (text_of(store / ".git" / "info" / "exclude") != excluded)
    write_whole(store / ".git" / "info" / "exclude", excluded, private_file);
  store_.emplace(store, GitCheckout::Ours{});
}

void TryTrees::require_settled() const {
  if (const char* what = under_way(checkout_.repository()))
    throw UsageError(checkout_.top().string() + " is in the middle of a " + what + "; finish or abort it first");
}

// Repositories in the checkout, submodules or not, with their commits: their own changes are no part of a state, so
// there must be none. `untracked` are the ones that no index names yet.
std::map<std::string, std::string> TryTrees::settled_submodules(const std::vector<std::string>& untracked) const {
  std::map<std::string, std::string> submodules;
  try {
    for (const auto& paths : {checkout_.repositories_in(*store_), checkout_.repositories_in(checkout_), untracked})
      for (const std::string& path : paths)
        if (!submodules.contains(path)) submodules[path] = checkout_.commit_in(path);
  } catch (const StorageError& why) {
    throw UsageError("a repository in the checkout can't be read: " + first_line(why.what()));
  }
  for (const auto& [each, commit] : submodules) {
    if (commit.empty())
      throw UsageError("the repository " + each + " in the checkout has no commit, so it can't be part of a try");
    std::string changes;
    try {
      changes = GitCheckout(top() / each).git({"status", "--porcelain", "--ignore-submodules=dirty"});
    } catch (const StorageError& why) {
      throw UsageError("the repository " + each + " in the checkout can't be read: " + first_line(why.what()));
    }
    if (!changes.empty())
      throw UsageError("the repository " + each +
                       " in the checkout has changes, which can't be part of a try; commit them there first");
  }
  return submodules;
}

TakenState TryTrees::take() const {
  TakenState state;
  try {
    const std::string head = checkout_.git({"rev-parse", "HEAD^{commit}", "HEAD^{tree}"});
    state.commit = first_line(head);
    trees_of_commits_[state.commit] = first_line(head.substr(std::min(head.size(), state.commit.size() + 1)));
  } catch (const StorageError&) {  // there is no commit
  }
  std::vector<std::string> add = {"-c", "core.safecrlf=false", "add", "--all", "--", "."}, untracked_repositories;
  std::vector<std::string> others = {"ls-files", "--others", "--exclude-standard", "-z", "--", "."};
  for (const std::string& path : without_project(top())) add.push_back(path), others.push_back(path);
  // A file that a state has stays in them, however large it grows: else going back to that state would overwrite it.
  std::optional<std::set<std::string>> known;  // asked for only if there is a large one
  const auto is_known = [&](const std::string& file) {
    if (!known) {
      const std::vector<std::string> names = entries_of(checkout_.git_of(*store_, {"ls-files", "-z"}));
      known.emplace(names.begin(), names.end());
    }
    return known->contains(file);
  };
  for (std::string& file : entries_of(checkout_.git(others))) {
    if (file.ends_with('/')) {
      file.pop_back();
      untracked_repositories.push_back(file);
      continue;
    }
    std::error_code error;
    const auto size = fs::file_size(checkout_.top() / file, error);
    const bool is_large = !error && size > static_cast<std::uintmax_t>(largest_untracked_file) && !is_known(file);
    (is_large ? state.too_large : state.untracked).push_back(file);
    if (is_large) add.push_back(":(exclude,literal)" + file);
  }
  const auto submodules = settled_submodules(untracked_repositories);
  for (const auto& [path, commit] : submodules) state.submodules.push_back(path);
  checkout_.add(*store_, std::move(add), submodules);
  state.tree = first_line(checkout_.git_of(*store_, {"write-tree"}));
  if (!is_commit_hash(state.tree)) throw StorageError("git gave no hash of " + top().string());
  return state;
}

std::vector<std::string> TryTrees::ignored_inputs() const {
  std::vector<std::string> inputs,
      list = {"ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z", "--", "."};
  for (const std::string& path : without_project(top())) list.push_back(path);
  for (std::string path : entries_of(checkout_.git(list))) {
    if (path.ends_with('/')) path.pop_back();
    if (!is_written_by_runs(path) && path.find("__pycache__") == std::string::npos) inputs.push_back(path);
  }
  return inputs;
}

fs::path TryTrees::check_out(const std::string& tree, const std::string& beside, const std::string& commit,
                             const std::vector<std::string>& links, Leftovers leftovers) const {
  const auto held_by = [&](const char* name) {
    return first_line(text_of(folder_ / name / ".git" / "stepladder-tree").value_or(""));
  };
  const char* name = held_by("a") == tree ? "a" : held_by("b") == tree ? "b" : held_by("a") == beside ? "b" : "a";
  const fs::path folder = folder_ / name, holds = folder / ".git" / "stepladder-tree";
  std::error_code error;
  fs::remove(holds, error);
  store_->check_out_to(folder, tree, commit);
  if (leftovers == Leftovers::removed) remove_leftovers(folder, folder_ / leftovers_file);
  write_whole(holds, tree + "\n", private_file);
  for (const std::string& link : links) {
    const fs::path place = folder / link;
    if (fs::is_directory(fs::symlink_status(place, error))) fs::remove(place, error);  // a submodule's, if it is empty
    if (fs::exists(fs::symlink_status(place, error)) || !fs::exists(top() / link, error)) continue;
    fs::create_directories(place.parent_path(), error);
    fs::create_symlink(top() / link, place, error);
  }
  return folder;
}

void TryTrees::keep_leftovers_of(const std::string& tree) const {
  for (const char* const name : {"a", "b"}) {
    if (first_line(text_of(folder_ / name / ".git" / "stepladder-tree").value_or("")) != tree) continue;
    std::string names;
    for (const std::string& file : left_in(folder_ / name)) names += file + '\0';
    return write_whole(folder_ / leftovers_file, names, private_file);
  }
}

const std::string& TryTrees::tree_of(const std::string& commit) const {
  const auto found = trees_of_commits_.find(commit);
  return found == trees_of_commits_.end() ? commit : found->second;
}

RunPatch TryTrees::patch(const std::string& from, const std::string& to, PatchOf which) const {
  if (which == PatchOf::whole) return patch_of(*store_, {from, to}, which);
  const auto [found, is_new] = patches_.try_emplace({tree_of(from), tree_of(to)});
  if (is_new) try {
      found->second = patch_of(*store_, {found->first.first, found->first.second}, which, &changed_files(from, to));
    } catch (const StorageError&) {
      patches_.erase(found);
      throw;
    }
  return found->second;
}

const std::vector<std::string>& TryTrees::changed_files(const std::string& from, const std::string& to) const {
  const auto [found, is_new] = changed_.try_emplace({tree_of(from), tree_of(to)});
  const auto& [before, after] = found->first;
  if (is_new && before != after) try {
      found->second = entries_of(store_->git({"diff-tree", "-r", "-z", "--name-only", "--no-renames", before, after}));
      std::erase_if(found->second, [&](const std::string& file) { return is_of_project(top(), file); });
    } catch (const StorageError&) {
      changed_.erase(found);
      throw;
    }
  return found->second;
}

bool TryTrees::differs(const std::string& commit, const std::string& tree) const {
  const std::vector<std::string> changed = changed_files(commit, tree);
  return std::ranges::any_of(
      changed, [&](const std::string& file) { return !is_written_by_runs(file) || !content_of(commit, file).empty(); });
}

std::vector<std::string> TryTrees::files_of(const std::string& tree) const {
  return entries_of(store_->git({"ls-tree", "-r", "-z", "--name-only", "--full-tree", tree}));
}

std::string TryTrees::content_of(const std::string& tree, const std::string& path) const {
  return store_->git({"ls-tree", "--full-tree", tree, "--", ":(literal)" + path});
}

// PEP 552: flags behind the magic number say whether Python compares it with its source.
bool TryTrees::is_unchecked_bytecode(const std::string& tree, const std::string& path) const {
  const std::string entry = content_of(tree, path);  // "100644 blob HASH\tPATH"
  if (!entry.starts_with("100")) return false;
  const std::size_t hash = entry.find("blob ") + 5;
  const std::string bytes = store_->git({"cat-file", "blob", entry.substr(hash, entry.find('\t') - hash)});
  return bytes.size() > 4 && (bytes[4] & 3) == 1;
}

void TryTrees::restore(const std::string& tree) const {
  // The store's index gets every file of the checkout, so that new ones are removed.
  const std::string now = take().tree;
  if (!without_project(top()).empty())
    for (const std::string& each : {now, tree})
      for (const std::string& file : files_of(each))
        if (is_of_project(top(), file))
          throw UsageError("this series was begun by an older version, and its states have " + file +
                           ", a file of the project, which going back would overwrite; `stepladder try end`, and "
                           "begin anew");
  checkout_.git_of(*store_, {"read-tree", "--reset", "-u", tree});
}

std::string content_outside(const fs::path& path) {
  ContentHash hash;
  for_files(path, [&](const fs::path& file) {
    hash.take(fs::relative(file, path).string() + '\0');
    std::error_code error;
    if (const fs::path target = fs::read_symlink(file, error); !error) return hash.take("-> " + target.string());
    std::string why;
    const Descriptor open = open_regular(file.string(), why);
    if (!open) return hash.take(why);
    std::uint64_t offset = 0;
    for (std::string piece; !(piece = read_at(open.get(), offset, 1 << 20)).empty(); offset += piece.size())
      hash.take(piece);
  });
  return hash.text();
}

std::string stamp_outside(const fs::path& path) {
  ContentHash hash;
  for_files(path, [&](const fs::path& file) {
    struct stat it = {};
    if (::lstat(file.c_str(), &it) != 0) return hash.take("none");
    for (const std::int64_t value :
         {std::int64_t(it.st_size), std::int64_t(it.st_ino), std::int64_t(it.st_mtim.tv_sec),
          std::int64_t(it.st_mtim.tv_nsec), std::int64_t(it.st_ctim.tv_sec), std::int64_t(it.st_ctim.tv_nsec)})
      hash.take(std::to_string(value) + " ");
  });
  return hash.text();
}

}  // namespace stepladder
