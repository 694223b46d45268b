// Programs that the talker asks, Slurm's and nvidia-smi among them.
#pragma once

#include <poll.h>

#include <chrono>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "app/far/files.h"
#include "storage/process.h"

namespace stepladder::far {

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
  // This program, once more and to outlive this process. Its answer is awaited: what it prints before it closes its
  // output.
  void start_self(const std::vector<std::string>& arguments, std::chrono::seconds patience, Done done);

  void add_to(std::vector<pollfd>& polled) const;
  void handle();
  bool is_idle() const { return children_.empty(); }

 private:
  struct Child {
    std::optional<Process> process;  // none: it outlives us, or could not be started
    Descriptor output, errors;
    Clock::time_point deadline;
    Done done;
    Outcome outcome;
  };
  Child& add(std::chrono::seconds patience, Done done);
  static Process start(Child& child, Launch launch);
  static void read_from(Descriptor& end, std::string& text);
  static bool has_ended(Child& child, Clock::time_point now);

  std::vector<Child> children_;
  std::list<Process> outliving_;  // awaited, so that they leave no zombies
};

}  // namespace stepladder::far
