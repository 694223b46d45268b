// Where a stretch of a step's time goes, by kind of work. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "app/profile/slice_layout.h"
#include "storage/traces/attribution.h"

namespace stepladder {

// A step's time by kind, for any stretch of it: each moment counts once, as attribution.h shares it, so that the sums
// of the whole step are those of its profile (but for slices that weren't kept). Made once, on any thread; a question
// costs microseconds, however long the stretch.
class RangeSums {
 public:
  explicit RangeSums(const StepSlices& step);

  // Milliseconds by kind. They add up to the part of `range` that is within the step's slices.
  KindArray in(TimeRange range) const;

 private:
  static constexpr std::size_t between_sums = 1024;  // moments
  struct Share {
    std::uint8_t kind = 0;
    float share = 0;
  };
  // From one moment to the next, the time belongs to the same kinds.
  struct Moment {
    std::int64_t at_ns = 0;
    std::size_t first = 0;  // of shares_
  };
  KindArray until(double ns) const;  // nanoseconds
  void add(KindArray& sums, std::size_t moment, double until_ns) const;

  std::vector<Moment> moments_;  // the last one is the end, without shares
  std::vector<Share> shares_;
  std::vector<KindArray> sums_;  // of all moments before each between_sums-th
};

}  // namespace stepladder
