// Smoothing of noisy curves for the eye; never for a number that is judged.
#pragma once

#include <span>
#include <vector>

namespace stepladder {

// Exponential moving average, debiased: divided by 1 - weight^n (Kingma & Ba 2015, section 3), so that the first
// points are an average of what there is and not a climb from zero. `weight` is that of the past per usual distance
// between points (the median of x's), so that gaps count for what they are; 0 gives y back. Values that are missing or
// not finite stay as they are and are passed over.
std::vector<double> smooth(std::span<const double> x, std::span<const double> y, double weight);

}  // namespace stepladder
