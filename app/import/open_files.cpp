// Reads /proc to find out which process writes a file, so that its run ends with it. A file counts if it is open for
// writing, or mapped shared and writable. Each call reads a link per open file, so callers limit how often they ask.
#include "app/import/open_files.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "storage/number_text.h"
#include "storage/process_stat.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t most_processes = 4096;
constexpr int most_notices = 1000;        // of a file
constexpr std::size_t most_noticed = 64;  // files

std::int64_t number_in(std::string_view text) {
  return parse_number<std::int64_t>(text).value_or(-1);
}

// Calls visit(pid) for each process of this user.
template <class Visit>
void for_each_own_process(const Visit& visit) {
  std::error_code error;
  for (auto it = fs::directory_iterator("/proc", error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::int64_t pid = number_in(it->path().filename().string());
    struct stat about = {};
    if (pid > 0 && ::stat(it->path().c_str(), &about) == 0 && about.st_uid == ::geteuid()) visit(pid);
  }
}

bool is_regular(const fs::path& path) {
  struct stat about = {};
  return path.is_absolute() && ::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode);
}

void add_descriptors(std::int64_t pid, std::map<fs::path, std::int64_t>& files) {
  std::error_code error;
  const fs::path folder = "/proc/" + std::to_string(pid) + "/fd";
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    struct stat link = {};
    if (::lstat(it->path().c_str(), &link) != 0 || (link.st_mode & S_IWUSR) == 0) continue;
    std::error_code gone;
    const fs::path target = fs::read_symlink(it->path(), gone);
    if (!gone && is_regular(target)) files.try_emplace(target, pid);
  }
}

// Lines "begin-end perms offset device inode   path".
void add_maps(std::int64_t pid, std::map<fs::path, std::int64_t>& files) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t perms = line.find(' ');
    const std::size_t path = line.find('/');
    if (perms == std::string::npos || path == std::string::npos || line.compare(perms + 1, 4, "rw-s") != 0) continue;
    if (const fs::path target = line.substr(path); is_regular(target)) files.try_emplace(target, pid);
  }
}

}  // namespace

std::int64_t parent_of(std::int64_t pid) {
  const auto stat = process_stat(pid);
  return stat ? stat->parent : -1;
}

std::vector<std::int64_t> with_descendants(std::int64_t pid) {
  std::multimap<std::int64_t, std::int64_t> children;
  for_each_own_process([&](std::int64_t each) { children.emplace(parent_of(each), each); });
  std::vector<std::int64_t> found{pid};
  for (std::size_t i = 0; i < found.size() && found.size() < most_processes; ++i)
    for (auto [child, end] = children.equal_range(found[i]); child != end; ++child)
      if (std::ranges::find(found, child->second) == found.end()) found.push_back(child->second);
  return found;
}

std::vector<std::int64_t> other_own_processes() {
  std::vector<std::int64_t> pids;
  for_each_own_process([&](std::int64_t pid) {
    if (pid != ::getpid() && pids.size() < most_processes) pids.push_back(pid);
  });
  return pids;
}

std::map<fs::path, std::int64_t> files_open_for_writing(const std::vector<std::int64_t>& pids) {
  std::map<fs::path, std::int64_t> files;
  for (const std::int64_t pid : pids) {
    add_descriptors(pid, files);
    add_maps(pid, files);
  }
  return files;
}

OpenNotices::OpenNotices()
    : notices_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)), waker_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void OpenNotices::add(const fs::path& file) {
  if (files_.size() == most_noticed || files_.contains(file)) return;
  const int watch = ::inotify_add_watch(notices_.get(), file.c_str(), IN_OPEN);
  files_[file] = watch;
  if (watch >= 0) left_[watch] = most_notices;
}

void OpenNotices::remove(const fs::path& file) {
  const auto found = files_.find(file);
  if (found == files_.end() || left_.erase(found->second) == 0) return;
  ::inotify_rm_watch(notices_.get(), found->second);
}

bool OpenNotices::wait(std::chrono::milliseconds most) {
  std::array<pollfd, 2> sources{pollfd{waker_.get(), POLLIN, 0}, pollfd{notices_.get(), POLLIN, 0}};
  ::poll(sources.data(), sources.size(), static_cast<int>(most.count()));
  bool noticed = false;
  alignas(inotify_event) std::array<char, 4096> bytes;
  for (ssize_t size; (size = ::read(notices_.get(), bytes.data(), bytes.size())) > 0;)
    for (ssize_t at = 0; at < size;) {
      inotify_event event;
      std::memcpy(&event, bytes.data() + at, sizeof(event));
      at += static_cast<ssize_t>(sizeof(event) + event.len);
      const auto left = left_.find(event.wd);
      if (left == left_.end()) continue;
      noticed = true;
      if (--left->second > 0) continue;
      left_.erase(left);
      ::inotify_rm_watch(notices_.get(), event.wd);
    }
  return noticed;
}

void OpenNotices::wake() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(waker_.get(), &one, sizeof(one)));
}

}  // namespace stepladder
