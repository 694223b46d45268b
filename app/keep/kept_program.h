// The keeper's part that is the same wherever it runs (docs/architecture.md): it is the parent of one program that
// isn't ours, reads what the program prints, and sees its end. `watch -- COMMAND`, `record run` and the far program
// keep so; they differ in where the output goes and in how the end is written down.
#pragma once

#include <chrono>
#include <functional>
#include <initializer_list>
#include <string_view>

#include "storage/process.h"

namespace stepladder {

// Makes this process a keeper: these signals don't end it, and tools that list processes show what it is.
void become_keeper(std::initializer_list<int> ignored_signals);

// Replaces these standard streams by /dev/null, so that nobody waits for their end.
void leave_streams(std::initializer_list<int> streams);

// For a disk that is full at the program's end: tries until it succeeds, or for so long. Returns whether it did.
bool keep_trying(std::chrono::milliseconds patience, std::chrono::milliseconds pause,
                 const std::function<bool()>& attempt);

// Not thread-safe: one thread. The program lives on when this is destroyed.
class KeptProgram {
 public:
  using Clock = std::chrono::steady_clock;
  using OnOutput = std::function<void(int stream, std::string_view bytes)>;  // STDOUT_FILENO or STDERR_FILENO

  // `out` and `err` are our ends of the program's outputs; `err` is empty if `out` has both. A program that has ended
  // is over although another process holds its output and prints on, if that takes longer than `held_patience`.
  KeptProgram(Process program, Descriptor out, Descriptor err, std::chrono::milliseconds held_patience);

  // Blocks until there is output, `other` can be read, a signal arrives or `patience` is over. Passes on at most 64 KiB
  // of each output.
  void poll(std::chrono::milliseconds patience, const OnOutput& on_output, int other = -1);

  // The program has ended, and everything that it has printed was passed on.
  bool is_over();

  // Closes every descriptor of this process above 2 but these and `kept`.
  void close_others(int kept) { close_all_but({out_.get(), err_.get(), process_.handle(), kept}); }

  Process& process() { return process_; }
  int out() const { return out_.get(); }  // -1: closed

 private:
  bool read_from(Descriptor& end, int stream, const OnOutput& on_output);

  Process process_;
  Descriptor out_, err_;
  const std::chrono::milliseconds held_patience_;
  bool is_quiet_ = false;  // the last look found nothing
  Clock::time_point last_output_ = Clock::now();
  Clock::time_point ended_{};  // when its end was seen; zero: it hasn't ended
};

}  // namespace stepladder
