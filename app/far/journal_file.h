// Appends to a journal (docs/journal.md): a file that only this process writes. A disk that refuses bytes never stops
// the caller; they wait in memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "app/far/files.h"
#include "app/far/wire.h"

namespace stepladder::far {

class JournalFile {
 public:
  static constexpr std::size_t most_in_memory = 64 << 20;
  static constexpr std::size_t longest_output = 64 << 10;  // bytes of a program in one line
  // Of a program that prints without end: whole up to 64 MiB, then 16 KiB a second, which the lines of steps need, and
  // at most 1 GiB in all. These count the journal's bytes.
  static constexpr double whole_output = 64 << 20;
  static constexpr double output_per_second = 16 << 10;
  static constexpr double most_output = 1 << 30;

  explicit JournalFile(Descriptor file) : file_(std::move(file)) {}

  void append(const Json& event);
  // The bytes of a program's output, as one line or more. If memory is full, or they are more than a journal takes,
  // the newest 64 KiB are held back until there is room, and older ones are lost and counted.
  void append_output(std::string_view bytes);
  void append_held_back();  // at the program's end

  void write();  // what waits; sooner or later all of it
  void sync();   // has the disk keep what was written

  bool has_unwritten() const { return written_ < bytes_.size(); }
  bool has_unsynced() const { return !bytes_.empty(); }
  std::chrono::steady_clock::time_point last_line() const { return last_line_; }

 private:
  void say_lost();
  void hold_back(std::string_view piece);
  bool has_room(std::size_t line);
  void append_piece(std::string_view piece);
  void finish_line();

  Descriptor file_;
  std::string bytes_;        // from offset `synced_` on: only what the disk has for sure is given up
  std::size_t written_ = 0;  // of `bytes_`
  std::uint64_t synced_ = 0;
  std::uint64_t lost_lines_ = 0;
  std::uint64_t lost_bytes_ = 0;
  bool lost_unsaid_ = false;
  std::string held_back_;          // output
  bool line_is_open_ = false;      // the output appended so far ends within a line
  double allowed_ = whole_output;  // bytes of output that may be appended now
  double appended_output_ = 0;     // bytes, in all
  std::chrono::steady_clock::time_point allowed_at_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_line_{};
};

}  // namespace stepladder::far
