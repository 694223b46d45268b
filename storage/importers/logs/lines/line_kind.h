// Whether a line was printed by a program, or is source code, a table of a document, or prose about steps.
#pragma once

#include <string_view>

namespace stepladder {

// By its marks: calls, comparisons, format specifiers, assignments with a comment behind them.
bool looks_like_code(std::string_view line);

// "| 100 | 3.4 |" of a document, or a cell of HTML.
bool is_table_row(std::string_view line);

// Holds a word that a program's step line does not, and that prose can hardly do without.
bool holds_prose(std::string_view line);

// "val", "eval" ... as a word of its own in the text before a number, not part of that number's key.
bool names_validation(std::string_view text);

}  // namespace stepladder
