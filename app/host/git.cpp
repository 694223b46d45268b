// Runs git on checkouts that may be a stranger's. git never sees the repository's own configuration, hooks or `.git`:
// it gets a view in a temporary folder with links to the data and only the settings in `read_settings_of`. Add a
// setting there only if it can't run a program or name a file elsewhere.
#include "app/host/git.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>
#include <utility>

#include "app/host/held_folder.h"
#include "app/process/run_program.h"
#include "engine/files/files.h"
#include "storage/own_folder.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

// The files that the view links to, in the checkout's own folder and in the one that its linked worktrees share.
constexpr std::array own_files = {"index", "logs/HEAD"};
constexpr std::array shared_files = {"objects", "refs", "reftable", "info", "shallow", "logs/refs", "lfs"};

// Names of settings that say how files and names are read. None of them runs a program.
constexpr std::array<std::string_view, 13> read_settings_of = {"core.autocrlf",
                                                               "core.eol",
                                                               "core.filemode",
                                                               "core.symlinks",
                                                               "core.ignorecase",
                                                               "core.checkstat",
                                                               "core.trustctime",
                                                               "core.precomposeunicode",
                                                               "core.quotepath",
                                                               "core.sparsecheckout",
                                                               "core.sparsecheckoutcone",
                                                               "user.name",
                                                               "user.email"};

// Variables to remove, except GIT_DIR and GIT_WORK_TREE, which name the view: those of a hook or an alias that called
// us would name another repository. Nothing is fetched.
constexpr std::array environment_for_git = {"GIT_COMMON_DIR",
                                            "GIT_INDEX_FILE",
                                            "GIT_OBJECT_DIRECTORY",
                                            "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                                            "GIT_NAMESPACE",
                                            "GIT_PREFIX",
                                            "GIT_EXTERNAL_DIFF",
                                            "GIT_ALLOW_PROTOCOL=none",
                                            "GIT_NO_LAZY_FETCH=1",
                                            "GIT_OPTIONAL_LOCKS=0",
                                            "GIT_TERMINAL_PROMPT=0",
                                            "GIT_DEFAULT_REF_FORMAT=files",
                                            "LC_ALL=C"};

bool is_read(const std::string& name) {
  const auto is_of = [&](std::string_view begin, std::string_view end) {
    return name.starts_with(begin) && name.ends_with(end) && name.find('=') == std::string::npos;
  };
  return std::ranges::find(read_settings_of, name) != read_settings_of.end() || is_of("branch.", ".merge") ||
         is_of("branch.", ".remote") || is_of("remote.", ".fetch");  // main@{upstream}
}

// A folder `.git` must contain all of a repository: one that leads elsewhere could lead to any repository of the user.
void refuse_borrowed(const fs::path& repository) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(repository / "commondir", error)))
    throw StorageError((repository / "commondir").string() + " leads to another repository");
  for (const char* name : {"HEAD", "objects", "refs", "packed-refs", "index", "info"})
    if (fs::is_symlink(fs::symlink_status(repository / name, error)))
      throw StorageError((repository / name).string() + " is a link, which may lead to another repository");
}

}  // namespace

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::vector<std::string> entries_of(const std::string& printed) {
  std::vector<std::string> entries;
  for (std::size_t begin = 0; begin < printed.size();) {
    const std::size_t end = std::min(printed.find('\0', begin), printed.size());
    if (end > begin) entries.push_back(printed.substr(begin, end - begin));
    begin = end + 1;
  }
  return entries;
}

// The brackets matter: git compares only what comes before the first of a pattern's signs with what it ignores.
std::string leaving_out(const std::string& path, const std::string& end) {
  std::string pattern = ":(exclude)[\\" + path.substr(0, 1) + "]";
  for (std::size_t i = 1; i < path.size(); ++i) {
    if (std::string_view("*?[\\").find(path[i]) != std::string_view::npos) pattern += '\\';
    pattern += path[i];
  }
  return pattern + end;
}

bool is_commit_hash(const std::string& text) {
  return (text.size() == 40 || text.size() == 64) && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

GitCheckout::GitCheckout(const fs::path& folder, std::optional<std::chrono::seconds> patience)
    : deadline_(patience ? std::optional(std::chrono::steady_clock::now() + *patience) : std::nullopt) {
  // Git refuses a folder of another user here, unless the user's own configuration allows it.
  const std::string folders = run({"git", "-c", "safe.bareRepository=explicit", "-C", folder.string(), "rev-parse",
                                   "--path-format=absolute", "--git-dir", "--git-common-dir"});
  repository_ = first_line(folders);
  common_ = first_line(folders.substr(std::min(folders.size(), repository_.string().size() + 1)));
  top_ = top_of(folder);
  for (const fs::path& file : {common_ / "config", repository_ / "config.worktree"})
    if (fs::exists(file)) read_settings(file);
  if (!formats_.empty() && repository_ != common_)
    throw StorageError(repository_.string() + " is a linked worktree with reftables, which Stepladder can't read");
  make_view();
}

GitCheckout::GitCheckout(const fs::path& folder, Ours how)
    : repository_(folder / ".git"), common_(repository_), top_(folder) {
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(folder, error)) || !fs::is_directory(fs::symlink_status(repository_, error)))
    throw StorageError(folder.string() +
                       " isn't the checkout that Stepladder has made; remove it, and call this again");
  refuse_borrowed(repository_);
  if (text_of(repository_ / "config").value_or("").find("objectformat = sha256") != std::string::npos)
    object_format_ = "sha256";
  make_view(!how.own_index);
}

void GitCheckout::make_view(bool with_index) {
  make_folder(view_.path() / "logs");
  for (const std::string name : own_files)
    if (with_index || name != "index") fs::create_symlink(repository_ / name, view_.path() / name);
  for (const char* name : shared_files)
    if (fs::exists(common_ / name)) fs::create_symlink(common_ / name, view_.path() / name);
  // Even if it doesn't exist yet: git may move all references there while the view is in use.
  fs::create_symlink(common_ / "packed-refs", view_.path() / "packed-refs");
  for (const std::string& name : names_in(open_folder(repository_.string()).get(), 1000))
    if (name.starts_with("sharedindex.")) fs::create_symlink(repository_ / name, view_.path() / name);
  // Not by write_whole, which waits for the disk: the view is gone with this process anyway.
  std::ofstream head(view_.path() / "HEAD"), config(view_.path() / "config");
  head << text_of(repository_ / "HEAD").value_or("");
  config << "[core]\nrepositoryformatversion = 1\nbare = false\n[extensions]\nobjectFormat = " << object_format_ << "\n"
         << formats_;
  if (!head.flush() || !config.flush()) throw StorageError(view_.path().string() + " cannot be written");
}

std::string GitCheckout::run(const std::vector<std::string>& command, std::vector<std::string> more_environment) const {
  if (more_environment.empty()) more_environment = {"GIT_DIR", "GIT_WORK_TREE"};
  for (const char* variable : environment_for_git) more_environment.emplace_back(variable);
  std::chrono::seconds patience = std::chrono::hours(24);
  if (deadline_) {
    patience = std::chrono::ceil<std::chrono::seconds>(*deadline_ - std::chrono::steady_clock::now());
    if (patience.count() <= 0) throw StorageError("git took too long");
  }
  try {
    return output_of(command, {}, more_environment, true, patience);
  } catch (const std::runtime_error& error) {
    throw StorageError(error.what());
  }
}

// True if the repository names this checkout: a `.git` that is a file or a link names a folder elsewhere, and one that
// somebody else wrote could name any repository of the user.
bool GitCheckout::names_back(const fs::path& top) const {
  std::error_code error;
  if (const auto checkout = text_of(repository_ / "gitdir"))
    return fs::equivalent(repository_ / first_line(*checkout), top / ".git", error);
  try {
    const std::string tree =
        run({"git", "-C", "/", "config", "--file", (repository_ / "config").string(), "core.worktree"});
    return fs::equivalent(repository_ / first_line(tree), top, error);
  } catch (const StorageError&) {
    return false;
  }
}

// Finds the checkout's top without its configuration, which may name any other folder.
fs::path GitCheckout::top_of(const fs::path& folder) const {
  std::error_code error;
  const fs::path begin = fs::canonical(folder, error);
  for (fs::path top = begin, below; top != below; below = std::exchange(top, top.parent_path())) {
    const fs::path entry = top / ".git";
    const fs::file_type type = fs::symlink_status(entry, error).type();
    if (type == fs::file_type::directory && fs::equivalent(entry, repository_, error)) {
      refuse_borrowed(entry);
      return top;
    }
    if (type != fs::file_type::regular && type != fs::file_type::symlink) continue;
    if (names_back(top)) return top;
    throw StorageError(entry.string() + " names " + repository_.string() + ", which doesn't name this checkout");
  }
  throw StorageError(folder.string() + " isn't in a git checkout");
}

void GitCheckout::read_settings(const fs::path& file) {
  const std::string list = run({"git", "-C", "/", "config", "--file", file.string(), "--null", "--list"});
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find('\0', begin), list.size());
    const std::string entry = list.substr(begin, end - begin);
    const std::size_t line = std::min(entry.find('\n'), entry.size());
    const std::string name = entry.substr(0, line), value = line < entry.size() ? entry.substr(line + 1) : "true";
    if (name == "extensions.objectformat" && value == "sha256") object_format_ = value;
    if (name == "extensions.refstorage" && value == "reftable") formats_ = "refStorage = reftable\n";
    if (is_read(name)) settings_.push_back(name + "=" + value);
    begin = end + 1;
  }
}

std::string GitCheckout::git(const std::vector<std::string>& arguments) const {
  return git_of(*this, arguments);
}

std::string GitCheckout::git_of(const GitCheckout& repository, const std::vector<std::string>& arguments) const {
  std::vector<std::string> command = {"git", "-C", top_.string()};
  for (const std::string& setting : settings_) command.insert(command.end(), {"-c", setting});
  command.insert(command.end(),
                 {"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "submodule.recurse=false"});
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run(command, {"GIT_DIR=" + repository.view_.path().string(), "GIT_WORK_TREE=" + top_.string()});
}

std::string GitCheckout::commit_named(const std::string& name) const {
  try {
    return first_line(git({"rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}"}));
  } catch (const StorageError&) {
    return {};
  }
}

// Whether an index may have an entry of a repository: these bytes are its mode in every version of the format.
bool GitCheckout::may_name_repositories() const {
  constexpr std::string_view mode("\0\0\xE0\0", 4);
  for (const std::string& name : names_in(open_folder(view_.path().string()).get(), 1000))
    if ((name == "index" || name.starts_with("sharedindex.")) &&
        text_of(view_.path() / name).value_or("").find(mode) != std::string::npos)
      return true;
  return false;
}

std::vector<std::string> GitCheckout::repositories_in(const GitCheckout& index) const {
  std::vector<std::string> found;
  if (!index.may_name_repositories()) return found;
  for (const std::string& entry : entries_of(git_of(index, {"ls-files", "--stage", "-z"}))) {
    const std::size_t tab = entry.find('\t');
    if (!entry.starts_with("160000 ") || tab == std::string::npos) continue;
    const std::string path = entry.substr(tab + 1);
    std::error_code error;
    const bool is_own_folder = fs::canonical(top_ / path, error) == top_ / path && fs::is_directory(top_ / path, error);
    if (is_own_folder && fs::exists(fs::symlink_status(top_ / path / ".git", error))) found.push_back(path);
  }
  return found;
}

std::string GitCheckout::commit_in(const std::string& path) const {
  const GitCheckout other(top_ / path);
  if (other.top() != top_ / path) throw StorageError((top_ / path).string() + " isn't a git checkout");
  return other.commit_named("HEAD");
}

void GitCheckout::add(const GitCheckout& index, std::vector<std::string> arguments,
                      const std::map<std::string, std::string>& repositories) const {
  std::vector<std::string> update = {"update-index", "--add", "--replace"};
  for (const auto& [path, commit] : repositories) {
    for (const char* end : {"", "/*"}) arguments.push_back(leaving_out(path, end));
    if (!commit.empty()) update.insert(update.end(), {"--cacheinfo", "160000," + commit + "," + path});
  }
  git_of(index, arguments);
  if (update.size() > 3) git_of(index, update);
}

std::string GitCheckout::commit(const std::vector<std::string>& files, const std::string& message,
                                const std::vector<std::string>& left_out) const {
  const std::string head = first_line(text_of(repository_ / "HEAD").value_or(""));
  if (!head.starts_with("ref: refs/heads/"))
    throw StorageError(top_.string() + " is on no branch, so nothing was committed; `git switch -c NAME` makes one");
  const std::string branch = head.substr(5);
  std::map<std::string, std::string> repositories;
  for (const std::string& path : repositories_in(*this)) repositories[path] = commit_in(path);
  std::vector<std::string> update = {"add", "--update", "--", "."};
  update.insert(update.end(), left_out.begin(), left_out.end());
  add(*this, update, repositories);
  std::vector<std::string> add = {"add", "--"};
  for (const std::string& file : files) add.push_back(":(literal)" + file);
  if (!files.empty()) git(add);
  const std::string tree = first_line(git({"write-tree"})), before = commit_named(branch);
  // A branch without a commit is new, or git can't read it; then the commit would cut off all its history.
  std::error_code error;
  if (before.empty() &&
      (fs::exists(common_ / branch, error) || !git({"for-each-ref", "--format=%(refname)", branch}).empty()))
    throw StorageError(top_.string() + ": git can't read the commit of " + branch + ", so nothing was committed");
  std::vector<std::string> make = {"commit-tree", tree, "-m", message};
  if (!before.empty()) make.insert(make.end(), {"-p", before});
  const std::string made = first_line(git(make));
  git({"update-ref", "-m", "commit: " + first_line(message), branch, made, before});
  return made;
}

void GitCheckout::share_objects_with(const fs::path& folder) const {
  run({"git", "-C", "/", "init", "--quiet", "--template=", "--object-format=" + object_format_, "--", folder.string()});
  make_folder(folder / ".git" / "objects" / "info");
  write_whole(folder / ".git" / "objects" / "info" / "alternates", (common_ / "objects").string() + "\n", private_file);
  write_whole(folder / ".git" / "packed-refs", git({"for-each-ref", "--format=%(objectname) %(refname)", "refs/tags"}),
              private_file);
}

void GitCheckout::check_out_to(const fs::path& folder, const std::string& tree, const std::string& head) const {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(folder / ".git" / "HEAD", error))) {
    const fs::path part = folder.string() + ".part";
    for (const fs::path& broken : {folder, part}) fs::remove_all(broken, error);
    share_objects_with(part);
    fs::rename(part, folder);
  }
  const GitCheckout copy(folder, Ours{});
  copy.git({"read-tree", "--reset", "-u", tree});
  const std::string wanted = (head.empty() ? "ref: refs/heads/main" : head) + "\n";
  if (text_of(copy.repository() / "HEAD") != wanted) write_whole(copy.repository() / "HEAD", wanted, private_file);
}

}  // namespace stepladder
