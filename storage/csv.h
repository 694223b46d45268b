// Reads comma-separated text: one line's fields, and the tables that Stepladder itself keeps. One thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "storage/number_text.h"
#include "storage/regular_file.h"

namespace stepladder {

// Splits a line into its fields. A field that begins with a double quote may hold the separator, and a quote as "".
// Fields are without their quotes; they are views of the line or of this object, valid until the next split.
class CsvFields {
 public:
  const std::vector<std::string_view>& split(std::string_view line, char separator = ',');

 private:
  std::vector<std::string_view> fields_;
  std::string unquoted_;  // fields that differ from the line's text
};

// Spreadsheets take a field that begins with = + - @ or a control character for a formula, unless it is a number.
// `guard_formula` puts an apostrophe before it, which makes it text; `unguard_formula` is its inverse.
std::string guard_formula(std::string_view text);
std::string_view unguard_formula(std::string_view field);

// A file with a header line; empty lines and those that begin with # are skipped. Lines end in LF or CR LF.
// Everything throws StorageError "FILE, line N, ..." if the file isn't such a table.
class CsvFile {
 public:
  // `columns` is the header line that the file must have.
  CsvFile(const std::filesystem::path& file, std::string_view columns);

  bool next();  // the next row, which has as many fields as the header; false at the end

  // Fields of the row, by their column; valid until next().
  std::string_view text(std::size_t column) const { return (*fields_)[column]; }
  template <class Number>
  Number number(std::size_t column) const {
    const auto value = parse_number<Number>(text(column));
    if (!value) refuse("has '" + std::string(text(column)) + "' instead of a number");
    return *value;
  }

  [[noreturn]] void refuse(const std::string& why) const;

 private:
  bool next_line();

  std::filesystem::path file_;
  RegularFile input_;
  std::string line_;
  std::int64_t number_ = 0;
  CsvFields splitter_;
  const std::vector<std::string_view>* fields_ = nullptr;
  std::size_t columns_ = 0;
};

}  // namespace stepladder
