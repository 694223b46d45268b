// Derives a view's content on another thread, so that no frame waits for it, for any number of steps. Used by the
// thread that made it, the UI thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "app/job.h"

namespace stepladder {

// The inputs of a derivation, as numbers that change with them.
struct Basis {
  std::vector<std::int64_t> asked;  // the user's choices: a change starts at once
  std::vector<std::int64_t> data;   // the data read or received so far
};

template <class Made>
class Background {
  using Clock = std::chrono::steady_clock;

 public:
  bool is_pending() const { return job_.is_active(); }

  // True if a derivation should start. While data is still growing (being read, or arriving from live runs), deriving
  // takes at most a twentieth of the time, and training has the rest.
  bool is_stale(const Basis& now, bool is_growing) const {
    if (is_pending()) return false;
    return now.asked != basis_.asked || (now.data != basis_.data && (!is_growing || Clock::now() >= due_));
  }

  // `make` owns or shares everything that it reads. Call only while nothing is pending.
  void start(Basis basis, typename Job<Made>::Work make) {
    basis_ = std::move(basis);
    began_ = Clock::now();
    // The job also frees the result that take() replaced last: freeing a hundred megabytes takes milliseconds.
    job_.start([make = std::move(make), old = std::exchange(replaced_, {})](JobControl& job) mutable {
      old = {};
      return make(job);
    });
  }

  // Replaces `current` by the result, once. Waits at most `patience` for it.
  bool take(Made& current, std::chrono::milliseconds patience) {
    std::optional<Made> made = job_.take(patience);
    if (!made) return false;
    replaced_ = std::exchange(current, std::move(*made));
    due_ = Clock::now() + 19 * (Clock::now() - began_);
    return true;
  }

 private:
  Made replaced_{};
  Basis basis_;  // of the last start
  Clock::time_point began_{};
  Clock::time_point due_{};
  Job<Made> job_;
};

}  // namespace stepladder
