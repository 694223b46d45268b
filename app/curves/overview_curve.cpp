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
      add(bucket, bucket.first_step, bucket.min);
      if (&bucket == &overview.buckets.back() && bucket.last_step > bucket.first_step)
        add(bucket, bucket.last_step, bucket.min);
      continue;
    }
    // The one nearer to the bucket's first value is first.
    const bool falls = bucket.max - bucket.first < bucket.first - bucket.min;
    add(bucket, bucket.first_step, falls ? bucket.max : bucket.min);
    add(bucket, bucket.last_step, falls ? bucket.min : bucket.max);
  }
}

}  // namespace

OverviewCurve curve_of(Overview overview) {
  OverviewCurve curve{.overview = std::move(overview)};
  for_each_point(curve.overview, [&](const Bucket&, std::int64_t step, double value) {
    curve.points.x.push_back(static_cast<double>(step));
    curve.points.y.push_back(value);
  });
  curve.levels.follow(curve.points.x, curve.points.y);
  return curve;
}

Points means_of(const Overview& overview) {
  Points means;
  for_each_point(overview, [&](const Bucket& bucket, std::int64_t step, double) {
    means.x.push_back(static_cast<double>(step));
    means.y.push_back(bucket.mean);
  });
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
