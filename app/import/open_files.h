// Which files other processes hold open, from /proc; elsewhere than on Linux nobody is seen.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

namespace stepladder {

// The process and all that it has started, and they, as far as they live.
std::vector<std::int64_t> with_descendants(std::int64_t pid);

std::int64_t parent_of(std::int64_t pid);  // -1: not known

// Every process of this user but this one.
std::vector<std::int64_t> other_own_processes();

// The regular files that these processes have open for writing or, shared and writable, in memory, with the first
// process that has. Reads a link for each open file, so call it no more than a few times a second.
std::map<std::filesystem::path, std::int64_t> files_open_for_writing(const std::vector<std::int64_t>& pids);

}  // namespace stepladder
