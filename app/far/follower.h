// Sends the journals of followed runs, and their states when they change.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>

#include "app/far/journal_tail.h"
#include "app/far/run_state.h"

namespace stepladder::far {

class Follower {
 public:
  using Clock = std::chrono::steady_clock;
  using Send = std::function<void(const Json& line)>;
  using JobOf = std::function<const Job*(const std::string& run, int run_folder)>;  // null: no job

  Follower(std::string folder, Send send, JobOf job_of)
      : folder_(std::move(folder)), send_(std::move(send)), job_of_(std::move(job_of)) {}

  // Replaces what was followed. `runs` is {UUID: {name: offset}}. Throws Refusal.
  void follow(const Json& runs);

  // Sends what is there until `room` says that enough waits to be sent.
  void poll(const std::function<bool()>& has_room);

  bool is_idle() const { return runs_.empty(); }

 private:
  struct Followed {
    std::map<std::string, JournalTail> files;
    Attempt attempt;
    std::string state;  // as it was sent
    bool is_active = true;
    Clock::time_point over_since{};
    Clock::time_point next_listing{}, next_poll{}, next_state{};
    bool is_missing = false;
  };
  void poll_run(const std::string& run, Followed& followed, const std::function<bool()>& has_room);
  void send_state_if_due(const std::string& run, int run_folder, Followed& followed, Clock::time_point now);

  const std::string folder_;
  const Send send_;
  const JobOf job_of_;
  std::map<std::string, Followed> runs_;
};

}  // namespace stepladder::far
