// Remembers the places and meanings of a line's numbers, so that only the numbers of similar lines have to be read:
// most lines of a log differ from an earlier one in nothing else. The result equals read_step_line's, or is nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/importers/logs/lines/step_line.h"

namespace stepladder {

class LineLayout {
 public:
  // Learns that `text` was read as `read`; false if its meaning doesn't depend on its numbers alone.
  bool learn(std::string_view text, const ReadLine& read, const ReadTrace& trace);

  // Whether `text` is that line with other numbers; if so, `line` holds its values (its rate_text is in this object).
  bool read(std::string_view text, StepLine& line) const;

 private:
  // Digits, perhaps with a fraction and an exponent, and not part of a word.
  struct Number {
    std::uint32_t at = 0, size = 0;            // in text_
    std::uint32_t point = 0;                   // digits before the point or exponent
    std::uint32_t fraction = 0, exponent = 0;  // digits; 0 if there is none
    bool strict = false;                       // part of a date, a clock, a version: as many digits as before
    bool fixed = false;                        // the same digits as before
  };
  // A value that the line gives, in the order in which they were found.
  struct Slot {
    std::uint32_t number = 0;  // where it begins
    bool signed_ = false;
    bool compound = false;  // "1,096,331", "0:01:30"
    Field field = Field::none;
    double StepLine::*into = nullptr;  // null: a step or a rank
    double scale = 1;
  };
  // The places of the numbers of another line.
  static constexpr std::size_t most_numbers = 64;
  struct Places {
    std::uint32_t at[most_numbers], size[most_numbers];
  };
  static Number number_at(std::string_view text, std::size_t at);
  static bool next_number(std::string_view text, std::size_t from, Number& number);
  bool match(std::string_view text, Places& places) const;
  bool fits(const Number& known, const Number& found, std::string_view text) const;
  bool fill(const Slot& slot, std::string_view text, const Places& places, StepLine& line) const;

  std::string text_;
  StepLine line_;
  std::vector<Number> numbers_;
  std::vector<Slot> slots_;
};

// The layouts of the last kinds of lines. Used by one thread.
class LineLayouts {
 public:
  // Reads `text`; false if it needs a full reading, and `line` is then undefined. Its rate_text is valid until the next
  // line is learned.
  bool read(std::string_view text, StepLine& line);
  void learn(std::string_view text, const ReadLine& read, const ReadTrace& trace);

 private:
  static constexpr std::size_t most = 8;
  std::array<LineLayout, most> layouts_;
  std::array<std::size_t, most> order_{0, 1, 2, 3, 4, 5, 6, 7};  // the last one that fitted first
  std::size_t count_ = 0;
};

// Tells lines that a program printed from source code, tables of a document, and prose about steps.
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
