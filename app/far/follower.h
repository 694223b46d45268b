// Sends the journals of followed runs, and their states when they change.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "app/far/run_state.h"

namespace stepladder::far {

// Follows a journal that another process writes: gives its bytes once, in order, and only those of whole lines whose
// checksum holds, since the end of a file may read as zeros on a network's file system for a while.

class JournalTail {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t most_at_once = 256 << 10;

  explicit JournalTail(std::uint64_t offset = 0) : offset_(offset), verified_(offset) {}

  std::uint64_t offset() const { return offset_; }

  // The bytes that follow, or none yet. A line that stays bad is given as it is once its writer has ended, or once good
  // lines have followed it for a minute.
  std::string next(int file, bool writer_has_ended, Clock::time_point now);

 private:
  void verify(int file, bool writer_has_ended, Clock::time_point now);
  void give_up(const std::string& window, std::size_t begin, bool writer_has_ended, Clock::time_point now);

  std::uint64_t offset_;    // of the next byte to give
  std::uint64_t verified_;  // bytes before this one may be given
  bool is_bad_ = false;
  std::uint64_t bad_line_ = 0;          // where the bad line begins
  Clock::time_point followed_since_{};  // by a good line; 0: by none
  Clock::time_point next_try_{};
};

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
