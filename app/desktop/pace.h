// For what has to be made again whenever a live run's steps have come, and costs more the more there are: lets it take
// a twentieth of the time at most, so that short runs are followed in every frame and long ones now and then.
#pragma once

#include <chrono>

namespace stepladder {

class Pace {
  using Clock = std::chrono::steady_clock;

 public:
  bool is_due() const { return Clock::now() >= due_; }

  // Lives while it is made.
  class Work {
   public:
    explicit Work(Pace& pace) : pace_(pace) {}
    ~Work() { pace_.due_ = Clock::now() + 19 * (Clock::now() - began_); }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    Pace& pace_;
    Clock::time_point began_ = Clock::now();
  };

 private:
  Clock::time_point due_{};
};

}  // namespace stepladder
