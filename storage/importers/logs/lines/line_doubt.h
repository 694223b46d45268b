// Tells lines that a program printed from source code, tables of a document, and prose about steps. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace stepladder {

// Where code begins, by its marks: calls, comparisons, format specifiers; 0 if the whole line is code, npos if nothing.
std::size_t code_at(std::string_view line);

// "| 100 | 3.4 |" of a document, or a cell of HTML.
bool is_table_row(std::string_view line);

// Where the first word is that prose usually has and that a program's step line doesn't; npos if there is none.
std::size_t prose_at(std::string_view line);

// The first of both.
std::size_t doubt_at(std::string_view line, bool is_record);

// "val", "eval" ... as a separate word in the text before a number, not part of that number's key.
bool names_validation(std::string_view text);

}  // namespace stepladder
