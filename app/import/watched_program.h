// A watched program as its tracker sees it: passes signals to it, reads its output and its end. POSIX; one at a time in
// a process.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "app/import/spool.h"

namespace stepladder {

// From this call on, SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to the program, for the rest of the process. The
// signals of our terminal reach the program without us.
void pass_signals_on();
// The signals that arrived while no program was running; a blocking read returns with EINTR for each.
int signals_without_program();

struct ProgramEnd {
  bool known = false;  // false: its keeper was killed, so nobody has seen how it ended
  int status = 0;      // as waitpid gives it
};

class WatchedProgram {
 public:
  // Starts it, before this process has threads; see start_keeper. The spool outlives this.
  WatchedProgram(const std::vector<std::string>& command, Spool& spool);
  // Attaches to one that another tracker has started; its output is read from the start.
  explicit WatchedProgram(Spool& spool);
  ~WatchedProgram();
  WatchedProgram(const WatchedProgram&) = delete;
  WatchedProgram& operator=(const WatchedProgram&) = delete;

  // Fills `piece` with the next output and returns its size; 0 once everything was read and the program has ended.
  // Blocks until then.
  std::size_t read(std::vector<char>& piece);

  // True once if the next piece doesn't follow the last one, since the bytes between them were freed.
  bool jumps();

  // Everything read so far is recorded as soon as `is_recorded` returns true.
  void mark(std::function<bool()> is_recorded);
  void free_recorded();  // frees output that no tracker needs any more

  const ProcessIdentity& keeper() const { return keeper_; }
  const ProcessIdentity& watched() const { return program_; }  // pid 0: it has exited
  bool has_ended();                                            // and all its output is in the spool
  bool at_end() { return has_ended() && read_ >= spool_.size(); }
  ProgramEnd end() const;
  int output_error() const { return spool_.state().output_error; }  // an errno; 0: all of it was passed on
  std::int64_t lost_bytes() const { return spool_.state().lost; }

 private:
  void take_signals(bool ours);
  void wait_for_more();

  struct Mark {
    std::int64_t offset;
    std::function<bool()> is_recorded;
  };

  Spool& spool_;
  ProcessIdentity keeper_;
  ProcessIdentity program_;
  Descriptor keeper_handle_;
  std::int64_t read_ = 0;
  bool jumped_ = false;
  std::deque<Mark> marks_;
};

}  // namespace stepladder
