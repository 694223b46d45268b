// What a view derives from steps, made on a thread of its own: no frame waits for it, however many steps there are.
// Lives on the UI thread.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <utility>

namespace stepladder {

template <class Made>
class Background {
  using Clock = std::chrono::steady_clock;

 public:
  bool is_pending() const { return made_.valid(); }

  // For what only follows live runs: then making takes a twentieth of the time at most, and training has the rest.
  bool is_due() const { return Clock::now() >= due_; }

  // `make` owns, or shares, all that it reads. Only while nothing is pending.
  void start(std::function<Made()> make) {
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
  Clock::time_point began_{};
  Clock::time_point due_{};
};

}  // namespace stepladder
