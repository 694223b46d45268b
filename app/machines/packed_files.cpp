// Packs the working tree that `--send` takes to a machine. A stranger's checkout may name files outside it or behind
// links, so each name is checked; git runs no program that the repository configures. Too many bytes are an error that
// names the largest file.
#include "app/machines/packed_files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <stdexcept>
#include <vector>

#include "app/host/git.h"
#include "app/process/run_program.h"
#include "app/text/format.h"
#include "storage/json_values.h"
#include "storage/own_folder.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t longest_patch = 1 << 20;  // recorded; the archive has all

// True if the name is inside the checkout: a stranger's index may name anything. `folders` have been checked already.
bool is_inside(const Descriptor& top, const std::string& name, std::set<std::string>& folders) {
  const fs::path path = name;
  if (path.empty() || path.is_absolute()) return false;
  std::vector<std::string> parts;
  for (const fs::path& part : path) parts.push_back(part.string());
  for (const std::string& part : parts)
    if (part.empty() || part == "." || part == ".." || part == ".git") return false;
  const std::string folder = path.parent_path().string();
  if (folder.empty() || folders.contains(folder)) return true;
  Descriptor inner;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    inner = folder_below(inner ? inner.get() : top.get(), parts[i]);
    if (!inner) return errno == ENOENT;  // deleted: then it isn't sent
  }
  folders.insert(folder);
  return true;
}

// Bytes of the files, each name of which ends in a zero byte. Throws if they are more than `most`.
std::uintmax_t bytes_of(const fs::path& folder, const std::string& names, std::uintmax_t most) {
  std::uintmax_t bytes = 0, largest = 0;
  std::string name_of_largest;
  for (std::size_t begin = 0; begin < names.size();) {
    const std::string name(names.c_str() + begin);
    begin += name.size() + 1;
    std::error_code error;
    if (!fs::is_regular_file(fs::symlink_status(folder / name, error))) continue;
    const std::uintmax_t size = fs::file_size(folder / name, error);
    if (error) continue;
    bytes += size;
    if (size >= largest) largest = size, name_of_largest = name;
  }
  if (most > 0 && bytes > most)
    throw std::runtime_error("the checkout has " + bytes_text(double(bytes)) + " (" + harmless(name_of_largest) + ": " +
                             bytes_text(double(largest)) +
                             "); data isn't sent: let git ignore it, and copy it to the machine yourself");
  return bytes;
}

}  // namespace

PackedFiles PackedFiles::of(const fs::path& folder, const std::string& names, std::uintmax_t most_bytes) {
  if (most_bytes > 0) bytes_of(folder, names, most_bytes);
  PackedFiles packed;
  std::string place = (fs::temp_directory_path() / "stepladder-files-XXXXXX").string();
  const int file = ::mkstemp(place.data());
  if (file < 0) throw std::runtime_error(place + " can't be created");
  ::close(file);
  packed.archive_ = place;
  output_of({"tar", "--create", "--gzip", "--file", place, "--directory", folder.string(), "--null", "--no-recursion",
             "--verbatim-files-from", "--files-from", "-"},
            names);
  return packed;
}

PackedFiles PackedFiles::working_tree(std::uintmax_t most_bytes) {
  std::optional<GitCheckout> checkout;
  std::string commit;
  try {
    checkout.emplace(fs::current_path());
    commit = first_line(checkout->git({"rev-parse", "HEAD"}));
  } catch (const std::exception& error) {
    throw std::runtime_error(
        "this folder isn't in a git checkout with a commit, so its files can't be sent; run it in a "
        "folder of that machine (--there). " +
        std::string(error.what()));
  }
  // Packs from the checkout's top, since a script may import modules beside its folder.
  const fs::path top = checkout->top();
  const std::string names =
      checkout->git({"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"});
  const Descriptor opened_top = open_folder(top.string());
  std::set<std::string> checked_folders;
  std::string kept;
  std::int64_t files = 0;
  for (std::size_t begin = 0; begin < names.size();) {
    const std::size_t end = std::min(names.find('\0', begin), names.size());
    const std::string name = names.substr(begin, end - begin);
    begin = end + 1;
    if (name.ends_with('/')) continue;  // another repository
    if (!is_inside(opened_top, name, checked_folders))
      throw std::runtime_error("git names " + harmless(name) +
                               " among this checkout's files, which is outside it or behind a link: nothing is sent");
    std::error_code error;
    const fs::file_status status = fs::symlink_status(top / name, error);
    if (!fs::is_regular_file(status) && !fs::is_symlink(status)) continue;  // deleted, or a submodule
    ++files;
    kept += name + '\0';
  }
  const std::uintmax_t bytes = bytes_of(top, kept, most_bytes);
  PackedFiles tree = of(top, kept);
  // Excludes what would start other programs: drivers of differences, and git in each submodule.
  std::string patch = checkout->git({"diff", "--binary", "--no-color", "--no-ext-diff", "--no-textconv",
                                     "--submodule=short", "--ignore-submodules=dirty", "HEAD"});
  const bool is_cut = patch.size() > longest_patch;
  if (is_cut) patch.resize(longest_patch);
  const fs::path below = fs::canonical(fs::current_path()).lexically_relative(top);
  const std::string prefix = below == "." ? "" : below.string() + "/";
  tree.description_ =
      Json{{"commit", commit},      {"branch", first_line(checkout->git({"rev-parse", "--abbrev-ref", "HEAD"}))},
           {"folder", prefix},      {"files", files},
           {"bytes", bytes},        {"patch", patch},
           {"patch_is_cut", is_cut}}
          .dump(-1, ' ', false, Json::error_handler_t::replace);
  return tree;
}

PackedFiles::~PackedFiles() {
  std::error_code ignored;
  if (!archive_.empty()) fs::remove(archive_, ignored);
}

}  // namespace stepladder
