// The journal of a keeper: its own lines, and as much of a program's output as a journal takes.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "app/far/wire.h"
#include "app/journal/journal_file.h"

namespace stepladder::far {

// The line that holds these bytes of a program's output, printed at `time` (unix seconds).
std::string output_line(double time, std::string_view bytes);

class OutputJournal {
 public:
  static constexpr std::size_t most_in_memory = 64 << 20;
  static constexpr std::size_t longest_output = 64 << 10;  // bytes of a program in one line
  // Limits for a program that prints without end: whole up to 64 MiB, then 16 KiB a second, which the lines of steps
  // need, and at most 1 GiB in all. These count the journal's bytes.
  static constexpr double whole_output = 64 << 20;
  static constexpr double output_per_second = 16 << 10;
  static constexpr double most_output = 1 << 30;

  explicit OutputJournal(JournalFile file) : file_(std::move(file)) {}

  void append(const Json& event);
  // The bytes of a program's output, as one line or more. If memory is full, or they are more than a journal takes,
  // the newest 64 KiB are held back until there is room, and older ones are lost and counted.
  void append_output(std::string_view bytes);
  void append_held_back();  // at the program's end

  void write();  // what waits; sooner or later all of it
  void sync() { file_.sync(); }

  bool has_unwritten() const { return file_.has_unwritten(); }
  bool is_complete() const { return file_.is_complete(); }
  std::chrono::steady_clock::time_point last_line() const { return last_line_; }

 private:
  void report_lost();
  void hold_back(std::string_view piece);
  bool has_room(std::size_t line);
  void append_piece(std::string_view piece);
  void finish_line();

  void add(std::string_view line);

  JournalFile file_;
  std::uint64_t lost_lines_ = 0;
  std::uint64_t lost_bytes_ = 0;
  bool lost_is_unreported_ = false;
  std::string held_back_;          // output
  bool line_is_open_ = false;      // the output appended so far ends within a line
  double allowed_ = whole_output;  // bytes of output that may be appended now
  double appended_output_ = 0;     // bytes, in all
  std::chrono::steady_clock::time_point allowed_at_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_line_{};
};

}  // namespace stepladder::far
