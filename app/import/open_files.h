// Finds out from /proc which files other processes have open; on systems without it, finds nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

namespace stepladder {

// The process and all its living descendants.
std::vector<std::int64_t> with_descendants(std::int64_t pid);

std::int64_t parent_of(std::int64_t pid);  // -1: not known

// Every process of this user but this one.
std::vector<std::int64_t> other_own_processes();

// The regular files that these processes have open for writing or, shared and writable, in memory, with the first
// process that has. Reads a link for each open file, so call it no more than a few times a second.
std::map<std::filesystem::path, std::int64_t> files_open_for_writing(const std::vector<std::int64_t>& pids);

}  // namespace stepladder
