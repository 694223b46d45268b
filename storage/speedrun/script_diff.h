// The changes between two scripts, line by line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepladder {

struct DiffLine {
  enum class Kind { removed, added } kind = Kind::removed;
  std::size_t line = 0;  // from 1, in the script that has it
  std::string text;
};

// A Python script without its comments, the space that ends its lines, and its empty lines. Keeps each # within a text;
// docstrings are code.
std::string without_comments(std::string_view script);

// The shortest list of changed lines (Myers 1986, "An O(ND) difference algorithm and its variations"). Scripts with
// more than 4,000 changes are compared as a whole block between their common beginning and end, so memory is bounded.
std::vector<DiffLine> script_diff(std::string_view before, std::string_view after);

// "2 lines removed, 3 added: - a = 1 | + a = 2", or that only comments differ.
std::string difference_in_short(std::string_view before, std::string_view after);

}  // namespace stepladder
