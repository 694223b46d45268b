// Patches of checkouts, for runs (what was uncommitted) and tries (what was changed). Untracked files are written as
// git would: git itself could only add them by writing to the repository or starting once per file.
#include "app/host/patch.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <map>
#include <string_view>
#include <utility>

#include "app/text/secrets.h"
#include "storage/regular_file.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_new_file = 64 << 10;  // an untracked file of a run's patch
constexpr std::size_t most_new_files = 500;
constexpr std::uintmax_t most_compared = 8 << 20;  // bytes before and after the changes, of all files together

constexpr std::array secret_names = {".env",       ".envrc",           ".netrc",      "_netrc",      ".pypirc",
                                     ".npmrc",     ".git-credentials", ".htpasswd",   ".pgpass",     "id_rsa",
                                     "id_dsa",     "id_ecdsa",         "id_ed25519",  "kaggle.json", ".boto",
                                     ".dockercfg", ".s3cfg",           "rclone.conf", ".vault_pass", "secrets.py"};
constexpr std::array secret_ends = {".pem",  ".key",     ".p12",    ".pfx",    ".jks",  ".keystore",
                                    ".kdbx", ".ovpn",    ".ppk",    ".pkcs12", ".gpg",  ".asc",
                                    ".env",  ".tfstate", ".tfvars", ".netrc",  ".token"};
constexpr std::array secret_folders = {".ssh",   ".aws",    ".gnupg",   ".kube",   ".docker",
                                       ".azure", ".gcloud", ".secrets", "secrets", ".huggingface"};
constexpr std::array secret_words = {"secret",      "secrets", "password", "passwords", "passwd", "credential",
                                     "credentials", "apikey",  "apikeys",  "token",     "tokens", "privatekey"};
constexpr std::array data_ends = {".json", ".yaml", ".yml", ".toml",       ".ini", ".cfg",
                                  ".conf", ".txt",  ".csv", ".properties", ""};

template <class List>
bool is_in(const List& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

bool is_secret_name(const std::string& name) {
  for (const std::string_view copy : {"~", ".bak", ".old", ".orig", ".swp"})
    if (name.size() > copy.size() && name.ends_with(copy))
      return is_secret_name(name.substr(0, name.size() - copy.size()));
  if (is_in(secret_names, name)) return true;
  for (const char* end : {".example", ".sample", ".template", ".dist"})
    if (name.ends_with(end)) return false;
  if (name.starts_with(".env") || name.starts_with("env.") || name.starts_with("id_rsa") ||
      name.starts_with("id_ed25519") || name.starts_with("service-account") || name.starts_with("service_account"))
    return !name.ends_with(".py");
  for (const char* end : secret_ends)
    if (name.ends_with(end)) return true;
  // "hf_token", "api-key.json", "client_secret.yaml": a word of the name, in a file of data.
  const std::string end = fs::path(name).extension().string();
  if (!is_in(data_ends, end)) return false;
  std::string word, last, all;
  for (const char letter : name.substr(0, name.size() - end.size()) + ".") {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
      word += letter;
      continue;
    }
    if (is_in(secret_words, word)) return true;
    all += word;
    last = std::exchange(word, {});
  }
  if (last == "key") return true;
  return all.find("apikey") != std::string::npos || all.find("privatekey") != std::string::npos;
}

// Git quotes such names; nobody needs them in a patch.
bool is_plain(const std::string& path) {
  return std::ranges::none_of(path, [](char letter) {
    return static_cast<unsigned char>(letter) < 0x20 || letter == '"' || letter == '\\' || letter == 0x7f;
  });
}

// A new file as git's patches have it; empty if it isn't a small text.
std::string as_new_file(const fs::path& top, const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(top / path, error);
  if (status.type() != fs::file_type::regular || !is_plain(path)) return {};
  const RegularFile file(top / path);
  if (!file.why().empty() || file.size() > static_cast<std::int64_t>(largest_new_file)) return {};
  const std::string text = file.read_at(0, largest_new_file);
  if (text.find('\0') != std::string::npos || holds_token(text)) return {};
  const bool runs = (status.permissions() & fs::perms::owner_exec) != fs::perms::none;
  std::string patch = "diff --git a/" + path + " b/" + path + "\nnew file mode " + (runs ? "100755" : "100644") + "\n";
  if (text.empty()) return patch + "index 0000000..e69de29\n";
  const auto lines = std::ranges::count(text, '\n') + (text.back() != '\n');
  // Git ends a name with spaces in it by a tab.
  patch += "--- /dev/null\n+++ b/" + path + (path.find(' ') != std::string::npos ? "\t" : "") + "\n@@ -0,0 +1," +
           std::to_string(lines) + " @@\n";
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    patch += "+" + text.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return text.back() == '\n' ? patch : patch + "\\ No newline at end of file\n";
}

// Takes the files out of a patch in whose part a secret stands.
void leave_secrets_out(RunPatch& patch) {
  constexpr std::string_view begins = "diff --git a/";
  std::string kept;
  for (std::size_t begin = 0; begin < patch.text.size();) {
    const std::size_t next = patch.text.find("\n" + std::string(begins), begin);
    const std::size_t end = next == std::string::npos ? patch.text.size() : next + 1;
    const std::string_view part = std::string_view(patch.text).substr(begin, end - begin);
    begin = end;
    if (!holds_token(part)) {
      kept += part;
      continue;
    }
    const std::string_view line = part.substr(0, part.find('\n'));
    const std::size_t name = line.rfind(" b/");
    patch.left_out.emplace_back(name == std::string_view::npos ? line : line.substr(name + 3));
  }
  patch.text = std::move(kept);
}

void shorten(RunPatch& patch) {
  patch.bytes = std::ssize(patch.text);
  if (patch.text.size() > longest_patch) patch.text.clear();
}

// Adds the sizes that the files have in a tree.
void add_sizes(const GitCheckout& checkout, const std::string& tree, const std::vector<std::string>& files,
               std::map<std::string, std::uintmax_t>& sizes) {
  std::vector<std::string> list = {"ls-tree", "-r", "-l", "-z", "--full-tree", tree};
  if (files.size() <= most_new_files) {  // else of all files
    list.emplace_back("--");
    for (const std::string& file : files) list.push_back(":(literal)" + file);
  }
  for (const std::string& entry : entries_of(checkout.git(list))) {
    const std::size_t tab = entry.find('\t');  // "100644 blob HASH    SIZE", then the name
    if (tab == std::string::npos) continue;
    const std::size_t space = entry.find_last_of(' ', tab);
    if (space != std::string::npos) sizes[entry.substr(tab + 1)] += std::strtoull(&entry[space], nullptr, 10);
  }
}

// Those of the changed files that no kept patch has: secrets, and the largest ones where all together are too large.
std::vector<std::string> left_out_of(const GitCheckout& checkout, const std::vector<std::string>& between,
                                     const std::vector<std::string>& changed) {
  std::map<std::string, std::uintmax_t> sizes;
  if (!changed.empty())
    for (const std::string& tree : between) add_sizes(checkout, tree, changed, sizes);
  std::vector<std::pair<std::uintmax_t, std::string>> by_size;
  std::vector<std::string> left_out;
  for (const std::string& file : changed) {
    std::error_code error;
    const bool is_here = between.size() == 1 && fs::is_regular_file(fs::symlink_status(checkout.top() / file, error));
    const auto here = is_here ? fs::file_size(checkout.top() / file, error) : 0;
    if (looks_secret(file))
      left_out.push_back(file);
    else
      by_size.emplace_back(sizes[file] + (error ? 0 : here), file);
  }
  std::ranges::sort(by_size);
  std::uintmax_t all = 0;
  for (const auto& [size, file] : by_size)
    if ((all += size) > most_compared) left_out.push_back(file);
  return left_out;
}

// True if a folder above may be a checkout.
bool has_git_above(const fs::path& folder) {
  std::error_code error;
  for (fs::path top = fs::absolute(folder, error), below; top != below; below = std::exchange(top, top.parent_path()))
    if (fs::exists(fs::symlink_status(top / ".git", error))) return true;
  return false;
}

bool is_off = false;
std::vector<fs::path> projects;  // the project's file; with its other name if it is a link

// Without an extension, a project's name may begin those of other files: "data" and "data.py".
std::vector<std::string> ends_after(const std::string& project) {
  if (fs::path(project).has_extension()) return {".", "-"};
  return {"-wal", "-shm", "-journal", ".spill", ".watch", ".machines", ".tries", ".checkpoints", ".before-"};
}

std::vector<std::string> projects_in(const fs::path& top) {
  std::vector<std::string> found;
  for (const fs::path& project : projects) {
    const fs::path inside = project.lexically_relative(top);
    if (!inside.empty() && inside != "." && *inside.begin() != "..") found.push_back(inside.string());
  }
  return found;
}

}  // namespace

bool looks_secret(const std::string& path) {
  std::string lower = path;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  std::vector<std::string> parts;
  for (const fs::path& part : fs::path(lower))
    if (!part.empty()) parts.push_back(part.string());
  for (std::size_t i = 0; i + 1 < parts.size(); ++i)
    if (is_in(secret_folders, parts[i])) return true;
  return !parts.empty() && is_secret_name(parts.back());
}

void leave_out_of_patches(const fs::path& database) {
  std::error_code error;
  const fs::path named = fs::absolute(database, error);
  projects = {fs::weakly_canonical(named, error), fs::weakly_canonical(named.parent_path(), error) / named.filename()};
  if (projects.front() == projects.back()) projects.pop_back();
}

std::vector<std::string> without_project(const fs::path& top) {
  std::vector<std::string> paths;
  for (const std::string& project : projects_in(top)) {
    paths.push_back(leaving_out(project));
    for (const std::string& end : ends_after(project)) paths.push_back(leaving_out(project, end + "*"));
  }
  return paths;
}

bool is_of_project(const fs::path& top, const std::string& path_below) {
  const std::vector<std::string> here = projects_in(top);
  return std::ranges::any_of(here, [&](const std::string& project) {
    const std::vector<std::string> ends = ends_after(project);
    return path_below == project ||
           std::ranges::any_of(ends, [&](const std::string& end) { return path_below.starts_with(project + end); });
  });
}

RunPatch patch_of(const GitCheckout& checkout, const std::vector<std::string>& between, PatchOf which,
                  const std::vector<std::string>* changed) {
  if (is_off && which == PatchOf::kept) return {};
  std::vector<std::string> diff = {"diff",         "--no-ext-diff", "--no-textconv",     "--no-color",
                                   "--no-renames", "--no-relative", "--submodule=short", "--ignore-submodules=dirty"};
  const auto git = [&](std::vector<std::string> how, const std::vector<std::string>& paths) {
    std::vector<std::string> command = diff;
    command.insert(command.end(), how.begin(), how.end());
    command.insert(command.end(), between.begin(), between.end());
    command.emplace_back("--");
    command.insert(command.end(), paths.begin(), paths.end());
    return checkout.git(command);
  };
  RunPatch patch;
  std::vector<std::string> paths = without_project(checkout.top());
  paths.insert(paths.begin(), ".");
  if (changed && changed->empty()) return patch;
  if (which == PatchOf::kept)
    patch.left_out = left_out_of(checkout, between, changed ? *changed : entries_of(git({"--name-only", "-z"}, paths)));
  for (const std::string& file : patch.left_out) paths.push_back(":(exclude,literal)" + file);
  patch.text = git({"-p", "--binary", "--full-index", "--unified=3", "--src-prefix=a/", "--dst-prefix=b/"}, paths);
  if (which == PatchOf::kept) {
    leave_secrets_out(patch);
    shorten(patch);
  }
  return patch;
}

RunPatch patch_in(const fs::path& folder) {
  if (is_off || !has_git_above(folder)) return {};
  try {
    const GitCheckout checkout(folder, std::chrono::seconds(10));
    const std::string commit = checkout.commit_named("HEAD");
    RunPatch patch = commit.empty() ? RunPatch{} : patch_of(checkout, {commit});
    patch.commit = commit;
    std::size_t files = 0;
    std::vector<std::string> others = {"ls-files", "--others", "--exclude-standard", "-z", "--", "."};
    for (const std::string& path : without_project(checkout.top())) others.push_back(path);
    for (const std::string& file : entries_of(checkout.git(others))) {
      const std::string text = looks_secret(file) || ++files > most_new_files ? "" : as_new_file(checkout.top(), file);
      if (text.empty() || std::size_t(patch.bytes) > longest_patch) {
        if (patch.left_out.size() < most_new_files) patch.left_out.push_back(file);
        continue;
      }
      patch.text += text;
      shorten(patch);
    }
    return patch;
  } catch (const std::exception&) {
    return {.bytes = unknown_length};
  }
}

void keep_no_patches() {
  is_off = true;
}

const RunPatch& patch_here() {
  static const RunPatch patch = [] {
    std::error_code error;
    return patch_in(fs::current_path(error));
  }();
  return patch;
}

}  // namespace stepladder
