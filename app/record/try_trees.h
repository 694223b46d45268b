// The states of a checkout that `stepladder try` compares. A state is kept as a git tree in a repository of our own
// that borrows the checkout's objects; nothing of the checkout or its repository is written, except by restore().
//   store/  index and objects of the states        a/, b/  checkouts that the command runs in
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/host/patch.h"

namespace stepladder {

inline constexpr std::int64_t largest_untracked_file = 10 << 20;  // bytes; a larger one isn't part of a state

struct TakenState {
  std::string tree;                     // git's hash
  std::string commit;                   // of HEAD; empty: there is none
  std::vector<std::string> untracked;   // files of the state that git doesn't track
  std::vector<std::string> too_large;   // untracked files that aren't part of it
  std::vector<std::string> submodules;  // and other repositories below the checkout: linked, not part of it
};

class TryTrees {
 public:
  // `folder` exists and is this process's alone. Blocks, as every verb does. Throws StorageError; UsageError if the
  // checkout is in the middle of a merge or a repository in it has changes.
  TryTrees(const std::filesystem::path& checkout, std::filesystem::path folder);

  const GitCheckout& store() const { return *store_; }  // of the states; writing to it leaves their files alone
  const std::filesystem::path& top() const { return checkout_.top(); }

  // The checkout as it is now, with its untracked files.
  TakenState take() const;

  // Checks a state out into one of two folders, which isn't the one that holds `beside`, and returns it. Files that
  // runs have left there are removed, but for what compilers and Python write; all stay with Leftovers::kept. The
  // ignored files in `links` are links to the checkout's.
  // Once keep_leftovers_of was called, only those stay that it saw.
  enum class Leftovers { removed, kept };
  std::filesystem::path check_out(const std::string& tree, const std::string& beside, const std::string& commit,
                                  const std::vector<std::string>& links, Leftovers leftovers) const;

  // Notes what the runs of the state have left in its folder: what other states' runs leave beside that may be a
  // checkpoint, whatever it is called, and doesn't stay.
  void keep_leftovers_of(const std::string& tree) const;

  // The ignored files and folders at the checkout's top that a run may need: data, environments; not what compilers,
  // Python or trainings write.
  std::vector<std::string> ignored_inputs() const;

  // From a state or commit to a state; without files that look like secrets.
  RunPatch patch(const std::string& from, const std::string& to, PatchOf which = PatchOf::kept) const;
  // But for the project's, which a commit may have.
  const std::vector<std::string>& changed_files(const std::string& from, const std::string& to) const;
  // Whether the state isn't the commit's, but for files that runs write and git doesn't track.
  bool differs(const std::string& commit, const std::string& tree) const;
  std::vector<std::string> files_of(const std::string& tree) const;
  // What a path of the state holds, as a text that changes with it; empty if the state hasn't got it.
  std::string content_of(const std::string& tree, const std::string& path) const;
  // Whether it is bytecode that Python runs without a look at its source.
  bool is_unchecked_bytecode(const std::string& tree, const std::string& path) const;

  // Commits what git tracks, and these files, on the checkout's branch; files of the project stay as they were
  // committed. Returns the commit. Throws UsageError if HEAD is on no branch.
  std::string commit(const std::vector<std::string>& files, const std::string& message) const {
    return checkout_.commit(files, message, without_project(top()));
  }

  // Makes the checkout's files those of the state. Its index and its commits stay. Throws UsageError if a state has
  // files of the project, as those of an older version may: nothing overwrites or removes these.
  void restore(const std::string& tree) const;

 private:
  void require_settled() const;
  const std::string& tree_of(const std::string& commit) const;  // where take() has seen it; else what is given
  std::map<std::string, std::string> settled_submodules(const std::vector<std::string>& untracked) const;

  GitCheckout checkout_;
  const std::filesystem::path folder_;
  std::optional<GitCheckout> store_;
  mutable std::map<std::string, std::string> trees_of_commits_;
  using TwoTrees = std::pair<std::string, std::string>;
  mutable std::map<TwoTrees, std::vector<std::string>> changed_;
  mutable std::map<TwoTrees, RunPatch> patches_;
};

// A text that changes with the content of a file or folder outside git's reach. Reads it whole. Throws StorageError.
std::string content_outside(const std::filesystem::path& path);
// The same of its size and times, which is quick and changes at every write.
std::string stamp_outside(const std::filesystem::path& path);

}  // namespace stepladder
