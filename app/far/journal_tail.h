// Follows a journal that another process writes: gives its bytes once, in order, and only those of whole lines whose
// checksum holds, since the end of a file may read as zeros on a network's file system for a while.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace stepladder::far {

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

}  // namespace stepladder::far
