// Tells lines that a program printed from source code, tables of a document, and prose about steps.
#pragma once

#include <string_view>

namespace stepladder {

// Recognises code by its marks: calls, comparisons, format specifiers, assignments with a comment behind them.
bool looks_like_code(std::string_view line);

// "| 100 | 3.4 |" of a document, or a cell of HTML.
bool is_table_row(std::string_view line);

// Whether it holds a word that prose usually has and that a program's step line doesn't.
bool holds_prose(std::string_view line);

// "val", "eval" ... as a separate word in the text before a number, not part of that number's key.
bool names_validation(std::string_view text);

}  // namespace stepladder
