// Quantiles of any number of positive values in bounded memory.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "storage/records.h"

namespace stepladder {

// 16,384 bins to an octave, so that a bin's values differ by less than one part in 16,384 (0.006 %); each bin
// represents its values by their mean. Octaves are allocated when needed: a training's step times need two or three
// (256 kB each). Values below 2^-20 or from 2^40 on are counted at those ends (in milliseconds: 1 ns, and 35 years).
class FineHistogram {
 public:
  void add(double value);  // positive and finite
  std::int64_t count() const { return count_; }

  // As quantile() in statistics.h, with the bin's mean for each value; missing without values.
  double quantile(double q) const;

  // The number of values in bins whose mean is above `limit`.
  std::int64_t above(double limit) const;

 private:
  struct Bin {
    std::int64_t count = 0;
    double sum = 0;
  };
  static constexpr int lowest_octave = -20;
  static constexpr int octaves = 60;
  static constexpr int bins_per_octave = 1 << 14;

  double order_statistic(std::int64_t rank) const;

  std::array<std::vector<Bin>, octaves> bins_;
  std::int64_t count_ = 0;
};

}  // namespace stepladder
