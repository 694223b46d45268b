// Programs that the talker asks, Slurm's and nvidia-smi among them.
#pragma once

#include <poll.h>

#include <chrono>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "app/process/awaited_program.h"

namespace stepladder::far {

// The result of a program.
struct Outcome {
  bool started = false;
  bool in_time = false;
  int status = -1;  // of waitpid(2)
  std::string output, errors;

  bool succeeded() const { return started && in_time && status == 0; }
  std::string sentence(const std::string& program) const;  // why it didn't succeed
};

// Programs whose output is awaited. Nothing blocks: the owner polls and calls `handle` a few times a second. They are
// killed when this is destroyed.
class Children {
 public:
  using Clock = std::chrono::steady_clock;
  using Done = std::function<void(const Outcome&)>;

  // `done` is called in `handle`. A program that takes longer than `patience` is killed.
  void start(const std::vector<std::string>& command, std::chrono::seconds patience, Done done);
  // This program, once more and to outlive this process. Its answer is awaited: the first line that it prints.
  void start_self(const std::vector<std::string>& arguments, std::chrono::seconds patience, Done done);

  void add_to(std::vector<pollfd>& polled) const;
  void handle();
  bool is_idle() const { return children_.empty(); }

 private:
  struct Child {
    std::optional<AwaitedProgram> program;  // none: it could not be started
    bool outlives_us = false;
    Clock::time_point deadline;
    Done done;
    Outcome outcome;
  };
  void start(const Launch& launch, bool outlives_us, std::chrono::seconds patience, Done done);
  bool is_done(Child& child, Clock::time_point now);

  std::list<Child> children_;
  std::list<Process> outliving_;  // waited for, so that they leave no zombies
};

}  // namespace stepladder::far
