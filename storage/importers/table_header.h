// What a table's header line says of its columns: which number of a step each holds, and which ones count the steps or
// name the run, the metric, the split of the data and the time of a row.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "storage/csv.h"
#include "storage/importers/table_cell.h"

namespace stepladder {

// Without the blanks, quotes and comment marks around it.
std::string_view bare_cell(std::string_view text);

// The fields of a line, without blanks, quotes and comment marks around them.
class TrimmedFields {
 public:
  const std::vector<std::string_view>& split(std::string_view line, char separator) {
    fields_.clear();
    untrimmed_ = &splitter_.split(line, separator);
    for (const std::string_view field : *untrimmed_) fields_.push_back(bare_cell(field));
    return fields_;
  }

  // A field of the last line as its writer meant it, for names.
  std::string text(int column) const {
    return std::string(unguard_formula((*untrimmed_)[static_cast<std::size_t>(column)]));
  }

 private:
  const std::vector<std::string_view>* untrimmed_ = nullptr;
  CsvFields splitter_;
  std::vector<std::string_view> fields_;
};

struct TableHeader {
  char separator = ',';
  std::vector<Field> columns;  // `none` for a column that isn't used
  std::vector<TableColumn> readers;
  std::vector<std::string> names;
  bool is_export = false;   // of `stepladder export`
  bool is_comment = false;  // begins with #
  int step = -1, epoch = -1, batch = -1, run = -1, name = -1, stage = -1, rung = -1, metric = -1, value = -1, at = -1;
  std::vector<int> parts;  // that name a run beside `run`, if steps begin again where they change
  int split = -1;          // of the data that a row's loss is of: "train", "val"
  std::string twice;       // the name of two columns
  bool useful = false;

  bool is_long() const { return metric >= 0 && value >= 0; }
  // Whether a column names what a row belongs to, instead of measuring something.
  bool counts(std::size_t i) const {
    const int column = static_cast<int>(i);
    return column == step || column == epoch || column == batch || column == run || column == name || column == stage ||
           column == metric || column == value || column == at || column == rung || names[i] == "ladder_id" ||
           names[i] == "repeat";
  }
};

// Whether a line before the first row is the header or a comment. A comment ("# step loss") is the header unless a line
// below it is.
bool precedes_rows(std::string_view line, TableHeader& header);

}  // namespace stepladder
