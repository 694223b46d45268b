#include "storage/importers/trackers/metric_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stepladder {
namespace {

constexpr int last_resort = 100;  // MetricMeaning::second_rate of epochs' means and test sets

}  // namespace

double as_logged(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

double* field_of(StepRecord& record, MetricRole role) {
  switch (role) {
    case MetricRole::loss:
      return &record.loss;
    case MetricRole::val_loss:
      return &record.val_loss;
    case MetricRole::lr:
      return &record.lr;
    case MetricRole::grad_norm:
      return &record.grad_norm;
    default:
      return nullptr;
  }
}

double middle_of(std::vector<double> values) {
  if (values.empty()) return missing;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double unit_near(double typical, double wall_ms) {
  if (!(typical > 0) || !(wall_ms > 0)) return missing;
  const double ratio = typical / wall_ms;
  if (ratio > 0.1 && ratio < 2) return 1;
  return ratio > 0.1 / 1000 && ratio < 2.0 / 1000 ? 1000 : missing;
}

bool usable_count(double tokens) {
  return tokens >= 0.5 && tokens < 1e15;
}

bool is_better(const RoleCandidate& a, const RoleCandidate& b) {
  const bool a_last = a.second_rate >= last_resort;
  const bool b_last = b.second_rate >= last_resort;
  if (a_last != b_last) return b_last;
  return a.values != b.values ? a.values > b.values : a.second_rate < b.second_rate;
}

Metric logged_metric(const std::string& name, MetricRole role, bool is_chosen) {
  Metric metric{.name = name};
  if (role != MetricRole::loss && role != MetricRole::val_loss) return metric;
  metric.direction = Direction::lower;
  if (is_chosen) metric.field = role == MetricRole::loss ? "loss" : "val_loss";
  return metric;
}

}  // namespace stepladder
