// The text that a launcher or a container puts in front of every line: "0: ", "[rank1]: ", "trainer-1  | ",
// "Nov 26 10:00:00 host python[12]: ". It is decided once for a file, by its first lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stepladder {

class LinePrefix {
 public:
  // Whether the first lines have shown what the prefix is. Until then they have to be added.
  bool is_decided() const { return decided_; }
  void add(std::string_view line, bool is_redrawn);
  void decide();  // there are no more lines

  bool exists() const { return first_.kind != Kind::none; }
  // The line without the prefix, if it has it. `is_redrawn`: it follows a carriage return, not a line's end.
  std::string_view strip(std::string_view line, bool is_redrawn);

  // Of the line that was stripped last.
  std::int64_t rank() const { return found_.rank; }  // of the process; -1: not named
  bool has_time() const { return found_.kind == Kind::stamp || found_.has_time; }

 private:
  enum class Kind : std::uint8_t { none, label, rank, service, pod, syslog, stamp, logger };
  struct Found {
    Kind kind = Kind::none;
    std::size_t size = 0;
    std::int64_t rank = -1;
    bool has_time = false;
  };
  static Found find(std::string_view line);
  static Found find_one(std::string_view line);

  bool decided_ = false;
  int alike_ = 0;
  int unlike_ = 0;
  int skipped_ = 0;
  Found first_;
  Found found_;
};

// The date and time in front of a line, as loggers print it: "[2024-05-01 12:00:00,123]", "10/17/2025 16:31:56".
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
