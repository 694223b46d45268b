// Starting other programs.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app/far/files.h"

namespace stepladder::far {

struct Launch {
  std::vector<std::string> command;
  std::string folder;                              // to start in; empty: ours
  std::map<std::string, std::string> environment;  // added to ours
  int output = -1;                                 // takes standard output; -1: /dev/null
  int errors = -1;                                 // and standard error
  bool dies_with_us = false;
};

// Starts a program in a process group of its own, with no other descriptor of ours and with signals as usual. Returns
// its pid. Throws Refusal if it can't be started.
pid_t start(const Launch& launch);

// Closes every descriptor from 3 on.
void close_others();

// What a program that has ended left.
struct Outcome {
  bool started = false;
  bool in_time = false;
  int status = -1;  // of waitpid(2)
  std::string output, errors;

  bool succeeded() const { return started && in_time && status == 0; }
  std::string sentence(const std::string& program) const;  // why it didn't succeed
};

// Programs whose output is awaited. Nothing blocks: the owner polls. They die with this process.
class Children {
 public:
  using Clock = std::chrono::steady_clock;
  using Done = std::function<void(const Outcome&)>;

  // `done` is called in `handle`. A program that takes longer than `patience` is killed.
  void start(const std::vector<std::string>& command, std::chrono::seconds patience, Done done);
  // A pipe on which another process will write its answer and which it will close.
  void await(Descriptor pipe, std::chrono::seconds patience, Done done);

  void add_to(std::vector<pollfd>& polled) const;
  void handle();
  bool is_idle() const { return children_.empty(); }

 private:
  struct Child {
    pid_t pid = 0;  // 0: not ours
    Descriptor output, errors;
    Clock::time_point deadline;
    Done done;
    Outcome outcome;
  };
  static void read_from(Descriptor& end, std::string& text);
  static bool has_ended(Child& child, Clock::time_point now);

  std::vector<Child> children_;
};

}  // namespace stepladder::far
