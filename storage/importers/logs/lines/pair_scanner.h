// Finds the numbers of a line, each with the words in front of it and the unit behind. Pure, allocates nothing.
#pragma once

#include <cstdint>
#include <string_view>

#include "storage/records.h"

namespace stepladder {

// Whole numbers below it are exact in a double; a larger one isn't a count.
inline constexpr double largest_whole = 9e15;

// One number with the text before and after it.
struct Pair {
  std::string_view key;   // "elapsed time per iteration": the words in front, without separators; may be empty
  std::string_view hint;  // a unit in parentheses after the key: "ms"
  std::string_view unit;  // glued to the number or one space behind it, if it is known
  std::string_view text;  // the number itself
  double value = missing;
  std::int64_t whole = -1;  // the number if it is a whole one >= 0
  std::int64_t total = -1;  // N of "5/N"
  std::size_t at = 0;       // where the number begins
  std::size_t end = 0;      // behind the number, its total and its unit
  bool separated = false;   // ':' or '=' between key and number
  bool clock = false;       // was written h:mm:ss; the value is in seconds
  bool exact = false;       // was written as "15K(15123)"
  bool wrapped = false;     // was written as "tensor(4.9)"
};

// Goes through the numbers of a line from left to right. Dates, versions, and digits inside words don't count as
// numbers.
class PairScanner {
 public:
  explicit PairScanner(std::string_view line) : line_(line) {}
  bool next(Pair& pair);

  // Reads the number that begins at `at`, without its key; false if none does.
  bool number_at(std::size_t at, Pair& pair) {
    gap_ = at;
    return number(at, pair);
  }

 private:
  bool next_number(Pair& pair);
  bool number(std::size_t at, Pair& pair);
  void take_key(std::string_view gap, Pair& pair);

  // Skips everything that isn't a number.
  template <typename Part>
  bool skip(const char* p, Part part) {
    const char* const end = line_.data() + line_.size();
    while (p < end && part(*p)) ++p;
    at_ = gap_ = static_cast<std::size_t>(p - line_.data());
    return false;
  }

  std::string_view line_;
  std::size_t at_ = 0;
  std::size_t gap_ = 0;  // behind the last pair
};

}  // namespace stepladder
