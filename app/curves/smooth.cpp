#include "app/curves/smooth.h"

#include <algorithm>
#include <cmath>

namespace stepladder {
namespace {

double usual_distance(std::span<const double> x) {
  std::vector<double> distances;
  const std::size_t count = std::min<std::size_t>(x.size(), 1001);  // a thousand are enough
  for (std::size_t i = 1; i < count; ++i) {
    if (x[i] > x[i - 1]) distances.push_back(x[i] - x[i - 1]);
  }
  if (distances.empty()) return 1;
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

}  // namespace

std::vector<double> smooth(std::span<const double> x, std::span<const double> y, double weight) {
  std::vector<double> smoothed(y.begin(), y.end());
  if (weight <= 0 || y.size() < 2) return smoothed;
  const double usual = usual_distance(x);
  double sum = 0;
  double counted = 0;  // the weights in the sum
  double last_x = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!std::isfinite(y[i])) continue;
    double keep = weight;
    if (counted > 0) {
      const double distance = (x[i] - last_x) / usual;
      keep = std::fabs(distance - 1) < 1e-9 ? weight : std::pow(weight, std::max(distance, 0.0));
    }
    sum = sum * keep + y[i] * (1 - weight);
    counted = counted * keep + (1 - weight);
    smoothed[i] = sum / counted;
    last_x = x[i];
  }
  return smoothed;
}

}  // namespace stepladder
