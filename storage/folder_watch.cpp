#include "storage/folder_watch.h"

#include <algorithm>

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::seconds coarsest_time(2);  // of a file system: two changes may have the same time
constexpr std::chrono::seconds rarest_look(15);
constexpr int share_of_quiet = 20;

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> inner;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, fs::directory_options::skip_permission_denied, error);
       !error && it != fs::directory_iterator(); it.increment(error)) {
    std::error_code unknown;
    const std::string name = it->path().filename().string();
    if (!name.starts_with('.') && name != "__pycache__" && it->is_directory(unknown) && !it->is_symlink(unknown))
      inner.push_back(it->path());
  }
  std::sort(inner.begin(), inner.end());
  return inner;
}

}  // namespace

std::chrono::steady_clock::duration look_again_after(std::chrono::steady_clock::duration quiet) {
  return std::min<std::chrono::steady_clock::duration>(quiet / share_of_quiet, rarest_look);
}

std::chrono::steady_clock::duration quiet_since(fs::file_time_type changed) {
  const auto quiet = fs::file_time_type::clock::now() - changed;
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::max(quiet, decltype(quiet)::zero()));
}

void FolderWatch::look(const fs::path& root, const std::function<bool(const fs::path&)>& read) {
  look(root, 0, Clock::now(), read);
}

void FolderWatch::look(const fs::path& path, int depth, Clock::time_point now,
                       const std::function<bool(const fs::path&)>& read) {
  const auto [found, is_new] = folders_.try_emplace(path);
  Folder& folder = found->second;
  if (now < folder.next) return;
  std::error_code error;
  const fs::file_time_type changed = fs::last_write_time(path, error);
  if (error) return void(folders_.erase(found));
  if (is_new || changed != folder.changed) {
    folder.since = is_new ? now - quiet_since(changed) : now;
    folder.changed = changed;
  }
  if (is_new || now - folder.since < coarsest_time)
    folder.inner = read(path) ? folders_in(path) : std::vector<fs::path>();
  if (folder.inner.empty()) folder.next = now + look_again_after(now - folder.since);
  if (depth == deepest_) return;
  for (const fs::path& each : folder.inner) look(each, depth + 1, now, read);
}

}  // namespace stepladder
