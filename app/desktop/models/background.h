// Derives a view's content on another thread, so that no frame waits for it, for any number of steps. Used by the
// thread that made it, the UI thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <utility>
#include <vector>

#include "storage/thread_safety.h"

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
  bool is_pending() const {
    owner_.check();
    return made_.valid();
  }

  // Whether to start. While data is still growing (being read, or arriving from live runs), deriving takes at most a
  // twentieth of the time, and training has the rest.
  bool is_stale(const Basis& now, bool is_growing) const {
    owner_.check();
    if (is_pending()) return false;
    return now.asked != basis_.asked || (now.data != basis_.data && (!is_growing || Clock::now() >= due_));
  }

  // `make` owns or shares everything that it reads. Call only while nothing is pending.
  void start(Basis basis, std::function<Made()> make) {
    owner_.check();
    basis_ = std::move(basis);
    began_ = Clock::now();
    // The other thread also frees the result that take() replaced last: freeing a hundred megabytes takes milliseconds.
    made_ = std::async(std::launch::async, [make = std::move(make), old = std::exchange(replaced_, {})]() mutable {
      old = {};
      return make();
    });
  }

  // Replaces `current` by the result, once. Waits at most `patience` for it.
  bool take(Made& current, std::chrono::milliseconds patience) {
    owner_.check();
    if (!is_pending() || made_.wait_for(patience) != std::future_status::ready) return false;
    replaced_ = std::exchange(current, made_.get());
    due_ = Clock::now() + 19 * (Clock::now() - began_);
    return true;
  }

 private:
  OwnerThread owner_;
  std::future<Made> made_ GUARDED_BY(owner_);
  Made replaced_ GUARDED_BY(owner_){};
  Basis basis_ GUARDED_BY(owner_);  // of the last start
  Clock::time_point began_ GUARDED_BY(owner_){};
  Clock::time_point due_ GUARDED_BY(owner_){};
};

}  // namespace stepladder
