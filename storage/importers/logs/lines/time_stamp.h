// The date and time in front of a line, as loggers print it: "[2024-05-01 12:00:00,123]", "10/17/2025 16:31:56".
#pragma once

#include <string_view>

namespace stepladder {

// Reads the stamps of a log's lines in order. One object per log, since all its lines have the stamp at the same place.
class TimeStamp {
 public:
  // Unix seconds, assuming UTC; `missing` if the line has no stamp near its start.
  double read(std::string_view line);

 private:
  std::size_t at_ = 0;  // where the last one was
  int without_ = 0;     // lines without one, in a row
};

}  // namespace stepladder
