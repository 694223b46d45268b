// Finds out from /proc which files other processes have open; on systems without it, finds nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "storage/own_folder.h"

namespace stepladder {

// The process and all its living descendants.
std::vector<std::int64_t> with_descendants(std::int64_t pid);

std::int64_t parent_of(std::int64_t pid);  // -1: not known

// Every process of this user but this one.
std::vector<std::int64_t> other_own_processes();

// The regular files that these processes have open for writing or, shared and writable, in memory, with the first
// process that has. Reads a link for each open file, so call it no more than a few times a second.
std::map<std::filesystem::path, std::int64_t> files_open_for_writing(const std::vector<std::int64_t>& pids);

// Waits until one of some files is opened, by anyone: a database that is opened for milliseconds only is seldom open
// when one looks. A file counts a limited number of times. Where the system has no inotify left, nothing is noticed.
class OpenNotices {
 public:
  OpenNotices();

  void add(const std::filesystem::path& file);
  void remove(const std::filesystem::path& file);
  // Returns whether a file was opened; false after `most`, and at once from the moment somebody has called wake().
  bool wait(std::chrono::milliseconds most);
  void wake();  // any thread

 private:
  const Descriptor notices_, waker_;  // of inotify and eventfd; empty: none
  std::map<std::filesystem::path, int> files_;
  std::map<int, int> left_;  // notices, by watch
};

}  // namespace stepladder
