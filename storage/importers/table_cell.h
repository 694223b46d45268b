// Reads the names and cells of a table's columns as names and numbers in the lines of a log are read: "Step Time [ms]",
// "65.5k", "65,536", "500 ms", "10,69".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "storage/importers/logs/lines/pair_meaning.h"
#include "storage/records.h"

namespace stepladder {

// Which sign a table has before decimals, by the cells that can be read in one way only. It is learnt row by row.
class NumberStyle {
 public:
  explicit NumberStyle(char separator = ',') : is_comma_likely_(separator == ';'), has_commas_(separator != ',') {}

  void learn(std::string_view cell);

  bool has_point() const { return points_ && !commas_; }
  bool has_comma() const { return commas_ && !points_; }
  bool is_unknown() const { return !points_ && !commas_; }
  // Programs that separate fields by semicolons do so for the comma's sake.
  bool is_comma_likely() const { return is_comma_likely_; }

 private:
  bool points_ = false, commas_ = false;  // seen before decimals
  bool is_comma_likely_;
  bool has_commas_;  // a cell may have one without quotes
};

// What a number counts decides on "65,536" and "65.536" in a table that shows nowhere else what they mean.
enum class Counts : std::uint8_t { whole, rate, other };

struct CellNumber {
  double value = missing;  // `missing` for an empty cell too
  std::string unit;        // as printed
  bool is_clock = false;   // "0:01:30", in seconds
  bool is_number = true;   // false: a text
  std::string why;         // it can't be read, as the end of a sentence: "is not a number"; empty: it can be
};
CellNumber read_cell(std::string_view cell, const NumberStyle& style, Counts counts);

// The name without brackets and signs, its unit in parentheses behind it: "Step Time, ms" is "Step Time (ms)",
// "loss [val]" is "val loss".
std::string plain_column_name(std::string_view name);

class TableColumn {
 public:
  TableColumn() = default;
  explicit TableColumn(std::string_view name);

  // For a column that isn't read as a value of a step.
  void forget_meaning() { meaning_ = named_ = {}; }

  // By the column's name and, if that names no unit, by its cells.
  const Meaning& meaning() const { return meaning_; }
  // Of a column without a meaning, by its cells: "%"; may be empty.
  const std::string& unit() const { return unit_; }

  // The number in the unit of meaning(), throughput and tokens without "k" and the like.
  CellNumber read(std::string_view cell, const NumberStyle& style);

 private:
  Counts counts() const;
  bool take_unit(CellNumber& number);
  bool take_time(CellNumber& number, TimeUnit unit);
  bool take_rate(CellNumber& number, const Meaning& given);

  std::string name_;  // plain
  Meaning named_;     // by the name
  Meaning meaning_;
  std::string unit_;
  bool has_bare_ = false;   // a cell without a unit
  bool has_units_ = false;  // a cell with one, which the name lacks
};

}  // namespace stepladder
