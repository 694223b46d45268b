#include "storage/folder_watch.h"

#include <algorithm>

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::seconds coarsest_time(2);  // of a file system: two changes may have the same time
constexpr std::chrono::seconds rarest_look(15);
constexpr int share_of_quiet = 20;

}  // namespace

fs::path resolved(const fs::path& given) {
  std::error_code error;
  fs::path path = fs::weakly_canonical(given, error);
  return error ? fs::absolute(given).lexically_normal() : path;
}

std::chrono::steady_clock::duration look_again_after(std::chrono::steady_clock::duration quiet) {
  if (quiet < coarsest_time) return {};  // it may be growing
  return std::min<std::chrono::steady_clock::duration>(quiet / share_of_quiet, rarest_look);
}

std::chrono::steady_clock::duration quiet_since(fs::file_time_type changed) {
  const auto quiet = fs::file_time_type::clock::now() - changed;
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::max(quiet, decltype(quiet)::zero()));
}

void FolderWatch::look(const fs::path& root, const std::function<bool(const fs::path&)>& read) {
  Folder& folder = roots_[root];
  folder.path = root;
  look(folder, 0, Clock::now(), read);
}

void FolderWatch::look(Folder& folder, int depth, Clock::time_point now,
                       const std::function<bool(const fs::path&)>& read) {
  if (now < folder.next) return;
  std::error_code error;
  const fs::file_time_type changed = fs::last_write_time(folder.path, error);
  if (error) return;
  const bool is_new = folder.since == Clock::time_point();
  if (is_new || changed != folder.changed) {
    folder.since = is_new ? now - quiet_since(changed) : now;
    folder.changed = changed;
  }
  if (is_new || now - folder.since < coarsest_time) {
    if (!read(folder.path) || depth == deepest_)
      folder.inner.clear();
    else
      list(folder);
  }
  if (folder.inner.empty()) folder.next = now + look_again_after(now - folder.since);
  for (const auto& each : folder.inner) look(*each, depth + 1, now, read);
}

// Lists the folders in `folder`. Those that were known keep their state.
void FolderWatch::list(Folder& folder) {
  std::map<fs::path, std::unique_ptr<Folder>> known;
  for (auto& each : folder.inner) known.emplace(each->path, std::move(each));
  folder.inner.clear();
  std::error_code error;
  for (auto it = fs::directory_iterator(folder.path, fs::directory_options::skip_permission_denied, error);
       !error && it != fs::directory_iterator(); it.increment(error)) {
    std::error_code unknown;
    const std::string name = it->path().filename().string();
    if (name.starts_with('.') || name == "__pycache__" || !it->is_directory(unknown) || it->is_symlink(unknown))
      continue;
    std::unique_ptr<Folder>& inner = known[it->path()];
    if (!inner) inner = std::make_unique<Folder>(Folder{.path = it->path()});
    folder.inner.push_back(std::move(inner));
  }
  std::ranges::sort(folder.inner, [](const auto& a, const auto& b) { return a->path < b->path; });
}

}  // namespace stepladder
