// Formats rows of text as a table for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace stepladder {

struct TextTable;

// The width of the terminal on standard output; 0 if it isn't a terminal, so that piped rows stay one line each.
std::size_t terminal_columns();

// Pads columns to their widest cell and right-aligns those in `right`. The first row is the head. Wraps the text of a
// table wider than `columns` (0: never); if that isn't enough, each row becomes lines of "head  cell". Escapes control
// characters: names come from other people's logs.
std::string table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right,
                  std::size_t columns = terminal_columns());
std::string table(const TextTable& shown);  // one that the window and exports have too

}  // namespace stepladder
