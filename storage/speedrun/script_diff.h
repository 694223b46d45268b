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

// The shortest list of changed lines. Between their common beginning and end, scripts whose lines there make more than
// 16,000,000 pairs count as changed whole, so memory is bounded.
std::vector<DiffLine> script_diff(std::string_view before, std::string_view after);

// "2 lines removed, 3 added: - a = 1 | + a = 2", or that only comments differ.
std::string difference_in_short(std::string_view before, std::string_view after);

}  // namespace stepladder
