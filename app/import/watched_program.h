// Runs another program and reads its output. POSIX; one program at a time in a process.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace stepladder {

// From here on SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to the program, for the rest of the process.
void pass_signals_on();
// The signals that arrived while no program was running; a blocking read returns with EINTR for each.
int signals_without_program();

// The program's output arrives through pipes, or through a terminal of its own if ours is one, so that it prints line
// by line and in colour as usual. Created before any thread, since it forks.
class WatchedProgram {
 public:
  // Throws UsageError if it can't be started.
  explicit WatchedProgram(const std::vector<std::string>& command);
  ~WatchedProgram();
  WatchedProgram(const WatchedProgram&) = delete;
  WatchedProgram& operator=(const WatchedProgram&) = delete;

  struct Output {
    int descriptor;    // STDOUT_FILENO or STDERR_FILENO
    std::size_t size;  // in bytes
  };

  // Blocks until the program prints, and reads its output into `piece`; nothing once it has closed its output or ended.
  std::optional<Output> read(std::vector<char>& piece);

  int wait();  // blocks until it ends; returns its status as waitpid does

 private:
  struct Ends;
  Ends open_output();
  [[noreturn]] static void execute(const std::vector<std::string>& command, const Ends& ends);
  bool has_ended();

  pid_t pid_ = 0;
  int out_ = -1;
  int err_ = -1;
  std::optional<int> status_;
};

}  // namespace stepladder
