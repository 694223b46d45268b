// Which values of a quantity are better, and what a value is against the baseline's. Pure.
#pragma once

#include <string_view>

#include "storage/quantity.h"
#include "storage/records.h"

namespace stepladder {

// Of the fields of the steps; unknown for metrics, which say so themselves (Metric::direction).
Direction better_direction(Quantity quantity);

// A value less the baseline's, and divided by it. `missing` where either isn't finite; the factor also where the
// baseline's is 0 or of another sign.
double delta_from(double base, double value);
double factor_from(double base, double value);

enum class MetricVerdict { cannot_tell, better, worse, same };
std::string_view to_string(MetricVerdict verdict);  // "cannot-tell"
MetricVerdict metric_verdict(double delta, Direction direction);

}  // namespace stepladder
