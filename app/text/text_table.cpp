// Names come from other people's logs, so cells are escaped against markup and formulas.
#include "app/text/text_table.h"

#include <array>
#include <charconv>
#include <cmath>

#include "app/text/format.h"
#include "storage/csv.h"

namespace stepladder {
namespace {

void add_row(std::string& text, const std::vector<std::string>& cells) {
  text += "|";
  for (const std::string& cell : cells) text += " " + markdown_cell(cell) + " |";
  text += "\n";
}

}  // namespace

std::string to_markdown(const TextTable& table) {
  std::string text;
  add_row(text, table.heads);
  text += "|";
  for (const bool right : table.right) text += right ? " ---: |" : " :--- |";
  text += "\n";
  for (const auto& row : table.rows) add_row(text, row);
  return text;
}

std::string markdown_cell(const std::string& text) {
  std::string cell;
  for (const char c : harmless(text)) {
    if (std::string_view("|\\<>*_`[]&~$").find(c) != std::string_view::npos) cell += '\\';
    cell += c == '\n' ? ' ' : c;
  }
  return cell;
}

std::string csv_field(std::string_view given) {
  const std::string text = guard_formula(given);
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? "\"\"" : std::string(1, c);
  return field + "\"";
}

std::string exact(double value) {
  if (is_missing(value)) return "";
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

}  // namespace stepladder
