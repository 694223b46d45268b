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

  explicit JournalFile(Descriptor file) : file_(std::move(file)) {}

  void append(const Json& event);
  // The bytes of a program's output, as one line or more. They are lost, and counted, if memory is full.
  void append_output(std::string_view bytes);

  void write();  // what waits; sooner or later all of it
  void sync();   // has the disk keep what was written

  bool has_unwritten() const { return written_ < bytes_.size(); }
  bool has_unsynced() const { return !bytes_.empty(); }
  std::chrono::steady_clock::time_point last_line() const { return last_line_; }

 private:
  void say_lost();

  Descriptor file_;
  std::string bytes_;        // from offset `synced_` on: only what the disk has for sure is given up
  std::size_t written_ = 0;  // of `bytes_`
  std::uint64_t synced_ = 0;
  std::uint64_t lost_lines_ = 0;
  std::uint64_t lost_bytes_ = 0;
  bool lost_unsaid_ = false;
  std::chrono::steady_clock::time_point last_line_{};
};

}  // namespace stepladder::far
