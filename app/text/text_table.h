// A table as text: its Markdown, and the fields of Markdown and CSV.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepladder {

// Cells as shown; a cell without a value is empty.
struct TextTable {
  std::vector<std::string> heads;
  std::vector<bool> right;
  std::vector<std::vector<std::string>> rows;
};
std::string to_markdown(const TextTable& table);
// A cell of a Markdown table: one line, in which nothing is markup and no bar ends the cell.
std::string markdown_cell(const std::string& text);
// A field of a CSV file: quoted where needed, and never a formula (storage/csv.h).
std::string csv_field(std::string_view text);
// The fewest digits that give the number back exactly; empty if it is missing, else NaN, inf or -inf.
std::string exact(double value);

}  // namespace stepladder
