// The few things that a bisection asks of git.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stepladder {

// Runs git in a folder and returns what it prints, without the last line end. Blocks. Throws StorageError with git's
// own words if it fails.
std::string git(const std::filesystem::path& folder, const std::vector<std::string>& arguments);

}  // namespace stepladder
