#include "app/machines/packed_files.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "app/format.h"
#include "app/machines/child_process.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t longest_patch = 1 << 20;  // recorded; the archive has all

// What it prints. Throws std::runtime_error with its last words if it fails.
std::string output_of(const std::vector<std::string>& command, const std::string& input = {}) {
  ChildProcess child(command, false);
  child.write(input);
  child.close_input();
  std::string output, piece;
  while (!child.has_ended()) {
    piece.clear();
    child.turn(piece);
    output += piece;
    std::vector<pollfd> waiting;
    child.add_to(waiting);
    if (piece.empty()) ::poll(waiting.data(), waiting.size(), 20);
  }
  if (child.exit_status() != 0) throw std::runtime_error(command.front() + ": " + harmless(child.errors()));
  return output;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

PackedFiles PackedFiles::of(const fs::path& folder, const std::string& names) {
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
  std::string commit;
  try {
    commit = first_line(output_of({"git", "rev-parse", "HEAD"}));
  } catch (const std::exception&) {
    throw std::runtime_error(
        "this folder isn't in a git checkout with a commit, so its files can't be sent; run it in a "
        "folder of that machine (--there)");
  }
  // From the checkout's top, since a script may import what lies beside its folder.
  const fs::path top = first_line(output_of({"git", "rev-parse", "--show-toplevel"}));
  const std::string names = output_of(
      {"git", "-C", top.string(), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"});
  std::string kept;
  std::vector<std::pair<std::uintmax_t, std::string>> sizes;
  std::uintmax_t bytes = 0;
  for (std::size_t begin = 0; begin < names.size();) {
    const std::size_t end = std::min(names.find('\0', begin), names.size());
    const std::string name = names.substr(begin, end - begin);
    begin = end + 1;
    std::error_code error;
    const fs::file_status status = fs::symlink_status(top / name, error);
    if (!fs::is_regular_file(status) && !fs::is_symlink(status)) continue;  // deleted, or a submodule
    const std::uintmax_t size = fs::is_symlink(status) ? 0 : fs::file_size(top / name, error);
    sizes.emplace_back(size, name);
    bytes += size;
    kept += name + '\0';
  }
  if (bytes > most_bytes) {
    const auto largest = std::max_element(sizes.begin(), sizes.end());
    throw std::runtime_error("the checkout has " + bytes_text(double(bytes)) + " (" + largest->second + ": " +
                             bytes_text(double(largest->first)) +
                             "); data isn't sent: let git ignore it, and copy it to the "
                             "machine yourself");
  }
  PackedFiles tree = of(top, kept);
  std::string patch = output_of({"git", "-C", top.string(), "diff", "--binary", "HEAD"});
  const bool is_cut = patch.size() > longest_patch;
  if (is_cut) patch.resize(longest_patch);
  const std::string prefix = first_line(output_of({"git", "rev-parse", "--show-prefix"}));
  tree.description_ =
      nlohmann::ordered_json{
          {"commit", commit},      {"branch", first_line(output_of({"git", "rev-parse", "--abbrev-ref", "HEAD"}))},
          {"folder", prefix},      {"files", sizes.size()},
          {"bytes", bytes},        {"patch", patch},
          {"patch_is_cut", is_cut}}
          .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return tree;
}

PackedFiles::~PackedFiles() {
  std::error_code ignored;
  if (!archive_.empty()) fs::remove(archive_, ignored);
}

}  // namespace stepladder
