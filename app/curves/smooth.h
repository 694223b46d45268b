// Smooths noisy curves for the eye; never used for numbers.
#pragma once

#include <span>
#include <vector>

namespace stepladder {

// Exponential moving average, debiased: divided by 1 - weight^n (Kingma & Ba 2015, section 3), so that the first points
// are an average of the values so far rather than a climb from zero. `weight` is the past's weight per usual distance
// between points (the median of x's), so that gaps count by their width; 0 returns y. Skips values that are missing or
// not finite.
std::vector<double> smooth(std::span<const double> x, std::span<const double> y, double weight);

}  // namespace stepladder
