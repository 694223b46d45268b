// What a view derives from steps, made on a thread of its own: no frame waits for it, however many steps there are.
// Lives on the UI thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <utility>
#include <vector>

namespace stepladder {

// What something is made of, as numbers that change with it.
struct Basis {
  std::vector<std::int64_t> asked;  // what the user asked for: it is made anew at once
  std::vector<std::int64_t> data;   // what has been read, or has arrived, to make it from
};

template <class Made>
class Background {
  using Clock = std::chrono::steady_clock;

 public:
  bool is_pending() const { return made_.valid(); }

  // Whether to start. While data is still growing, being read or arriving from live runs, making takes a twentieth of
  // the time at most, and training has the rest.
  bool is_stale(const Basis& now, bool is_growing) const {
    if (is_pending()) return false;
    return now.asked != basis_.asked || (now.data != basis_.data && (!is_growing || Clock::now() >= due_));
  }

  // `make` owns, or shares, all that it reads. Only while nothing is pending.
  void start(Basis basis, std::function<Made()> make) {
    basis_ = std::move(basis);
    began_ = Clock::now();
    // What take() replaced last is freed over there: giving back a hundred megabytes takes milliseconds too.
    made_ = std::async(std::launch::async, [make = std::move(make), old = std::exchange(replaced_, {})]() mutable {
      old = {};
      return make();
    });
  }

  // Replaces `current` by what was made, once. Waits for it so long at most.
  bool take(Made& current, std::chrono::milliseconds patience) {
    if (!is_pending() || made_.wait_for(patience) != std::future_status::ready) return false;
    replaced_ = std::exchange(current, made_.get());
    due_ = Clock::now() + 19 * (Clock::now() - began_);
    return true;
  }

 private:
  std::future<Made> made_;
  Made replaced_{};
  Basis basis_;  // of what was started last
  Clock::time_point began_{};
  Clock::time_point due_{};
};

}  // namespace stepladder
