#include "storage/analysis/metric_verdict.h"

#include <cmath>

namespace stepladder {

Direction better_direction(Quantity quantity) {
  const QuantityFacts* const field = facts_of(quantity);
  return field ? field->better : Direction::unknown;
}

double delta_from(double base, double value) {
  return std::isfinite(base) && std::isfinite(value) ? value - base : missing;
}

double factor_from(double base, double value) {
  return std::isfinite(base) && std::isfinite(value) && base * value > 0 ? value / base : missing;
}

std::string_view to_string(MetricVerdict verdict) {
  switch (verdict) {
    case MetricVerdict::better:
      return "better";
    case MetricVerdict::worse:
      return "worse";
    case MetricVerdict::same:
      return "same";
    case MetricVerdict::cannot_tell:
      break;
  }
  return "cannot-tell";
}

MetricVerdict metric_verdict(double delta, Direction direction) {
  if (!std::isfinite(delta)) return MetricVerdict::cannot_tell;
  if (delta == 0) return MetricVerdict::same;
  if (direction == Direction::unknown) return MetricVerdict::cannot_tell;
  return (delta < 0) == (direction == Direction::lower) ? MetricVerdict::better : MetricVerdict::worse;
}

}  // namespace stepladder
