// `stepladder try parts`: which parts of a kept change did it. The parts are the hunks of its patch (its files, if
// there are too many), or words of the command line; a fractional factorial says which of them run together.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "app/host/git.h"

namespace stepladder {

// A hunk of a patch, or all of a file's change.
struct ChangePart {
  std::string file;
  std::string where;  // "train.py:12"
  std::int64_t added = 0, removed = 0;
  std::size_t old_begin = 0, old_lines = 0;  // of the file before, from 0
  std::vector<std::string> lines;            // that come in their place, each with its end
};

// The parts of the change between two states of the repository: hunks, or files if there are more than `most` hunks.
std::vector<ChangePart> parts_of_change(const GitCheckout& store, const std::string& from, const std::string& to,
                                        std::size_t most);

// The state `from` with these parts of the change. Writes to the repository, but not to its index. `scratch`: a file to
// write.
std::string state_with(const GitCheckout& store, const std::string& from, const std::string& to,
                       const std::vector<ChangePart>& parts, const std::vector<bool>& chosen,
                       const std::filesystem::path& scratch);

}  // namespace stepladder
