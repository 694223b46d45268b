// The one place that calls git. The checkout may be a stranger's, and a repository's own configuration, hooks and
// `.git` can name programs to run, hosts to connect to and files elsewhere. So git gets a view of the repository: a
// temporary folder with links to its objects, references and index, and of its configuration only settings that say how
// files are read. The user's own configuration counts, so git-lfs works.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/host/scratch_folder.h"

namespace stepladder {

class GitCheckout {
 public:
  // The checkout that contains the folder. Blocks, as git() does; with `patience`, everything together takes at most as
  // long. Both throw StorageError, with git's own words, and DataError.
  explicit GitCheckout(const std::filesystem::path& folder, std::optional<std::chrono::seconds> patience = {});

  // One that share_objects_with() has made, in an absolute folder; git isn't asked. Throws StorageError if it isn't.
  // `own_index`: with an index of this object, empty at first, so that the repository's stays as it is.
  struct Ours {
    bool own_index = false;
  };
  GitCheckout(const std::filesystem::path& folder, Ours how);

  // Runs git at the checkout's top and returns what it prints. Only `read-tree`
  // writes.
  std::string git(const std::vector<std::string>& arguments) const;

  // The same with the index, objects and references of another repository, so that nothing of this one's is written.
  std::string git_of(const GitCheckout& repository, const std::vector<std::string>& arguments) const;

  // The other repositories in the checkout's folders that an index names, submodules or not.
  std::vector<std::string> repositories_in(const GitCheckout& index) const;
  // The commit that one of them is at; empty: it has none. Throws StorageError if it can't be read.
  std::string commit_in(const std::string& path) const;

  // `git add` to an index, with other repositories at these commits. Git itself would start in each of them, with that
  // one's own configuration, and so run what a stranger wrote there.
  void add(const GitCheckout& index, std::vector<std::string> arguments,
           const std::map<std::string, std::string>& repositories) const;

  // Commits all tracked files and these others as they are, without hooks, but for what `left_out` names (pathspecs, as
  // leaving_out() makes them). Returns the commit.
  std::string commit(const std::vector<std::string>& files, const std::string& message,
                     const std::vector<std::string>& left_out) const;

  const std::filesystem::path& top() const { return top_; }
  // The folder called .git, if the checkout has it.
  const std::filesystem::path& repository() const { return repository_; }
  // The one that it shares with its linked worktrees; the same where there are none.
  const std::filesystem::path& shared_repository() const { return common_; }

  // The hash of a commit; empty if the checkout has none of this name.
  std::string commit_named(const std::string& name) const;

  // Makes a checkout without files that borrows this one's objects and has its tags. The folder must not exist.
  void share_objects_with(const std::filesystem::path& folder) const;

  // Checks a state out into such a folder, which is made if it isn't there, with this commit as its HEAD, if there is
  // one. Files that runs have left there stay.
  void check_out_to(const std::filesystem::path& folder, const std::string& tree, const std::string& head) const;

 private:
  std::filesystem::path folder(const char* name) const;
  std::string run(const std::vector<std::string>& command, std::vector<std::string> more_environment = {}) const;
  bool names_back(const std::filesystem::path& top) const;
  std::filesystem::path top_of(const std::filesystem::path& folder) const;
  void read_settings(const std::filesystem::path& file);
  void make_view(bool with_index = true);
  bool may_name_repositories() const;

  const std::optional<std::chrono::steady_clock::time_point> deadline_;
  ScratchFolder view_{"stepladder-git"};
  std::filesystem::path repository_, common_;  // not the same in a linked worktree
  std::filesystem::path top_;
  std::vector<std::string> settings_;  // "name=value"
  std::string formats_;                // of the view's own configuration
  std::string object_format_ = "sha1";
};

bool is_commit_hash(const std::string& text);

std::string first_line(const std::string& text);

// What git calls a pathspec: leaves out this path, or all that begin with it and `end` if that is a pattern such as
// "/*". Not a literal one, since `git add` fails for a literal path that git ignores.
std::string leaving_out(const std::string& path, const std::string& end = "");

// What git prints with -z, entry by entry.
std::vector<std::string> entries_of(const std::string& printed);

}  // namespace stepladder
