// Converts a metric's numbers to those of a step: shared by stores that are read whole (metric_table.h) and journals
// that are read as they grow (logged_steps.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "storage/importers/trackers/metric_names.h"
#include "storage/records.h"

namespace stepladder {

inline constexpr std::int64_t highest_logged_step = 1'000'000'000'000'000;

// All NaNs become the same, since none may look like `missing`.
double as_logged(double value);

// The step's field with this role; null if it has none.
double* field_of(StepRecord& record, MetricRole role);

// The upper of the two in the middle; `missing` if there is no value.
double middle_of(std::vector<double> values);

// The factor that makes milliseconds of a time without a unit: 1 or 1000, whichever gives a value near the wall clock,
// else `missing`.
double unit_near(double typical, double wall_ms);

// Whether a number can be that of a step's tokens.
bool usable_count(double tokens);

// One of several metrics with the same role. The one with the most values is better, except epochs' means and test
// sets.
struct RoleCandidate {
  std::size_t values = 0;
  int second_rate = 0;  // MetricMeaning::second_rate
};
bool is_better(const RoleCandidate& a, const RoleCandidate& b);

// The metric of this name and role. If it was chosen for its role, a loss's values are in the steps' field: to the bit,
// as no other field has them.
Metric logged_metric(const std::string& name, MetricRole role, bool is_chosen);

}  // namespace stepladder
