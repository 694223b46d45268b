#include "app/curves/overview_curve.h"

#include <utility>

namespace stepladder {
namespace {

// Adds the points of a bucket: one if all its values are equal, and one more if such a bucket ends the curve.
template <class Add>
void for_each_point(const Overview& overview, Add add) {
  for (const Bucket& bucket : overview.buckets) {
    if (bucket.count == 0) continue;
    if (bucket.min == bucket.max) {
      add(bucket.first_step, bucket.min);
      if (&bucket == &overview.buckets.back() && bucket.last_step > bucket.first_step)
        add(bucket.last_step, bucket.min);
      continue;
    }
    // The one nearer to the bucket's first value is first.
    const bool falls = bucket.max - bucket.first < bucket.first - bucket.min;
    add(bucket.first_step, falls ? bucket.max : bucket.min);
    add(bucket.last_step, falls ? bucket.min : bucket.max);
  }
}

}  // namespace

OverviewCurve curve_of(Overview overview) {
  OverviewCurve curve{.overview = std::move(overview)};
  // Thousands of curves are read at once: memory that grows step by step costs more than the values.
  curve.points.x.reserve(2 * curve.overview.buckets.size());
  curve.points.y.reserve(2 * curve.overview.buckets.size());
  for_each_point(curve.overview, [&](std::int64_t step, double value) {
    curve.points.x.push_back(static_cast<double>(step));
    curve.points.y.push_back(value);
  });
  curve.levels.follow(curve.points.x, curve.points.y);
  curve.values = curve.overview.values();
  curve.not_finite = curve.overview.not_finite();
  if (!curve.overview.exact()) curve.means = means_of(curve.overview);
  return curve;
}

MeanCurve means_of(const Overview& overview) {
  MeanCurve means;
  for (std::vector<double>* values : {&means.mean.x, &means.mean.y, &means.low, &means.high})
    values->reserve(overview.buckets.size() + 1);
  const auto add = [&](double step, const Bucket& bucket) {
    means.mean.x.push_back(step);
    means.mean.y.push_back(bucket.mean);
    means.low.push_back(bucket.min);
    means.high.push_back(bucket.max);
  };
  const Bucket* last = nullptr;
  for (const Bucket& bucket : overview.buckets) {
    if (bucket.count == 0) continue;
    add(static_cast<double>(bucket.first_step), bucket);
    last = &bucket;
  }
  if (last && last->last_step > last->first_step) add(static_cast<double>(last->last_step), *last);
  return means;
}

Points totals_of(const Overview& overview) {
  Points totals;
  double total = 0;
  double before = missing;
  const auto add = [&](double step, double mean, double steps) {
    total += mean * steps;
    totals.x.push_back(step);
    totals.y.push_back(total);
  };
  for (const Bucket& bucket : overview.buckets) {
    if (bucket.count == 0) continue;
    const auto first = static_cast<double>(bucket.first_step);
    const auto last = static_cast<double>(bucket.last_step);
    add(first, bucket.mean, is_missing(before) ? 1 : first - before);
    if (last > first) add(last, bucket.mean, last - first);
    before = last;
  }
  return totals;
}

}  // namespace stepladder
