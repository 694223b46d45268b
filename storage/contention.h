// Decides whether other programs took from a run what it needed: the rule behind the flag `busy-machine`. Pure.
#pragma once

#include <deque>
#include <functional>
#include <span>
#include <string>

#include "storage/records.h"

namespace stepladder {

// Others disturb a run if they take more than this share of what it needs: of its computing threads' cores, or of its
// GPU. Below it, the kernel's own work and its counting in hundredths of a second would count too.
inline constexpr double undisturbed_share = 0.1;

// A run of which others disturbed a smaller share of the steps that count isn't flagged: a median hardly notices them.
// From half of them on, its median itself is a disturbed step.
inline constexpr double least_disturbed_share = 0.25;
inline constexpr double too_disturbed_share = 0.5;

bool is_known(const Contention& contention);

// The cores that the run needs and doesn't find: 1.3 of 2 cores in use by others and 2 threads lack 1.3. Missing if it
// isn't known. A run never needs more cores than it may use.
double lacking_cores(const Contention& contention);

bool is_disturbed(const Contention& contention);

// "others used 1.3 of 2 cores, which left 0.7 for its 2 threads", or "others used 45 % of its GPU"; empty if not known.
// `when` follows the use: " during 64 % of the steps".
std::string contention_text(const Contention& contention, const std::string& when = {});

// The contention during each step, from samples that each cover the time since the one before.
class ContentionOfSteps {
 public:
  // `next` gives the samples in the order of time, and false after the last.
  explicit ContentionOfSteps(std::function<bool(SystemMetrics&)> next) : next_(std::move(next)) {}
  explicit ContentionOfSteps(std::span<const SystemMetrics> samples);

  // The mean over the `dt_ms` before `at`; unknown if samples cover less than half of them. Ask in the order of time.
  Contention during(double at, double dt_ms);

 private:
  struct Interval {
    double from, to;
    Contention contention;
  };
  void read_until(double at);

  const std::function<bool(SystemMetrics&)> next_;
  std::deque<Interval> intervals_;
  double last_at_ = missing;
  bool done_ = false;
};

}  // namespace stepladder
