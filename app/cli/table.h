// Rows of text for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace stepladder {

// Of the terminal that standard output is; 0 where it is none, so that what is piped keeps a row to a line.
std::size_t terminal_columns();

// Columns padded to their widest cell; those in `right` are right-aligned. The first row is the head. What is wider
// than `columns` (0: never) has its text wrapped, and where that is not enough each row becomes lines of "head  cell".
// Names come from other people's logs, so nothing in a cell can steer the terminal.
std::string table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right,
                  std::size_t columns = terminal_columns());

}  // namespace stepladder
