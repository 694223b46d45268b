// Formats rows of text as a table for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace stepladder {

struct TextTable;

// The width of the terminal on standard output; 0 if it isn't a terminal, so that piped rows stay one line each.
std::size_t terminal_columns();
std::size_t message_columns();  // the same of standard error

// Pads columns to their widest cell and right-aligns those in `right`. The first row is the head, if there are more
// than two columns. Escapes control characters: names come from other people's logs. Of a table wider than `columns`
// (0: never) names are shortened, then columns dropped, then texts wrapped; below 60 columns each row becomes lines of
// "head  cell".
std::string table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right,
                  std::size_t columns = terminal_columns());
std::string table(const TextTable& shown);  // one that the window and exports have too

// The text's words in lines of at most that many characters.
std::vector<std::string> wrap(const std::string& text, std::size_t most);

// Notes, one a line ("run 5, no-sync: ..."), wrapped to the terminal and escaped like cells.
std::string notes_text(const std::string& notes, std::size_t columns = terminal_columns());

}  // namespace stepladder
