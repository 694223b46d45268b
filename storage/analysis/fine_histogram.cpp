#include "storage/analysis/fine_histogram.h"

#include <algorithm>
#include <cmath>

namespace stepladder {

void FineHistogram::add(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);  // in [0.5, 1)
  int octave = exponent - 1 - lowest_octave;
  auto bin = static_cast<int>((2 * mantissa - 1) * bins_per_octave);
  if (octave < 0) octave = bin = 0;
  if (octave >= octaves) {
    octave = octaves - 1;
    bin = bins_per_octave - 1;
  }
  std::vector<Bin>& bins = bins_[static_cast<std::size_t>(octave)];
  if (bins.empty()) bins.resize(bins_per_octave);
  Bin& into = bins[static_cast<std::size_t>(bin)];
  ++into.count;
  into.sum += value;
  ++count_;
}

double FineHistogram::order_statistic(std::int64_t rank) const {
  std::int64_t passed = 0;
  for (const std::vector<Bin>& octave : bins_) {
    for (const Bin& bin : octave) {
      passed += bin.count;
      if (passed > rank) return bin.sum / static_cast<double>(bin.count);
    }
  }
  return missing;
}

double FineHistogram::quantile(double q) const {
  if (count_ == 0) return missing;
  const double place = std::clamp(q, 0.0, 1.0) * static_cast<double>(count_ - 1);
  const auto below = static_cast<std::int64_t>(place);
  const double fraction = place - static_cast<double>(below);
  const double lower = order_statistic(below);
  return fraction == 0 ? lower : lower + (order_statistic(below + 1) - lower) * fraction;
}

std::int64_t FineHistogram::above(double limit) const {
  std::int64_t sum = 0;
  for (const std::vector<Bin>& octave : bins_)
    for (const Bin& bin : octave)
      if (bin.count > 0 && bin.sum > limit * static_cast<double>(bin.count)) sum += bin.count;
  return sum;
}

}  // namespace stepladder
