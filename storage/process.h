// Another program, from its start to its end: the one place that creates processes from programs. It is a part of
// storage since app, engine and the far program all start programs, and only storage's parts are open to each of them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "storage/own_folder.h"

namespace stepladder {

// How a program is started. Descriptors stay the caller's.
struct Launch {
  static constexpr int nothing = -1;    // /dev/null
  static constexpr int inherited = -2;  // this process's own stream
  enum class Group { ours, own, session };

  std::vector<std::string> command;           // searched on PATH, if it has no slash, and its arguments
  std::string program = {};                   // the file to execute in place of command[0]; empty: command[0]
  std::string folder = {};                    // to start in; empty: ours
  std::vector<std::string> environment = {};  // "NAME=VALUE" sets a variable of ours anew, "NAME" removes it
  int input = nothing, output = nothing, errors = nothing;
  int fourth = nothing;      // becomes its descriptor 3, and all above are closed; nothing: what isn't O_CLOEXEC stays
  Group group = Group::own;  // a session has no terminal, so Ctrl-C here reaches neither it nor a group of its own
  std::vector<int> ignored_signals = {};  // all others do what they do by default, and none is blocked
};

// Not thread-safe: one thread at a time. Functions don't block unless they say so.
class Process {
 public:
  // Returns once the program runs. Throws std::system_error, whose what() is "'PROGRAM' cannot be started: REASON" or
  // "FOLDER cannot be entered: REASON".
  explicit Process(const Launch& launch);
  ~Process();  // kills it and waits for it, unless it has ended or is left alone
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;

  pid_t pid() const { return pid_; }
  void kill(int signal);                          // nothing is sent to a program that has ended
  void kill_group(int signal);                    // also to what it has started; needs a group of its own
  bool has_ended();                               // its number may be another process's afterwards
  bool wait(std::chrono::milliseconds patience);  // blocks at most so long; whether it has ended
  void end();                                     // asks it to end and waits; kills it after half a second
  void wait();                                    // blocks until it has ended
  void leave_alone() { is_left_ = true; }         // from now on nobody waits for it

  int handle() const { return end_.get(); }    // to be polled: readable at its end; -1 before Linux 5.3
  int wait_status() const { return status_; }  // as waitpid(2) gives it; after its end
  int exit_status() const;                     // 128 + N after signal N; after its end

 private:
  bool reap(int options);

  pid_t pid_ = 0;
  Descriptor end_;
  int status_ = 0;
  bool has_ended_ = false;
  bool is_left_ = false;
};

// 128 + N after signal N, from a status of waitpid(2).
int exit_status_of(int wait_status);

// The signals that this process ignores, for a program that is to ignore the same.
std::vector<int> ignored_signals();

// Closes every descriptor of this process above 2 but these.
void close_all_but(const std::vector<int>& kept);

// A pipe, closed in programs that are started. Its ends are above 3. Throws std::system_error.
struct Pipe {
  Pipe();
  Descriptor read, write;
};

}  // namespace stepladder
