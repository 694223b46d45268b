// Decides whether lower or higher values of a quantity are better, and compares a value with the baseline's. Pure.
#pragma once

#include <string_view>

#include "storage/quantity.h"
#include "storage/records.h"

namespace stepladder {

// The better direction of a field of the steps; unknown for metrics, which state their own (Metric::direction).
Direction better_direction(Quantity quantity);

// The difference of a value from the baseline's, and their ratio. `missing` where either isn't finite; the ratio also
// where the baseline's is 0 or of another sign.
double delta_from(double base, double value);
double factor_from(double base, double value);

enum class MetricVerdict { cannot_tell, better, worse, same };
std::string_view to_string(MetricVerdict verdict);  // "cannot-tell"
MetricVerdict metric_verdict(double delta, Direction direction);

}  // namespace stepladder
