// Turns steps into points over an axis, and joins them: differences, ratios, means. x ascends in every result. Values
// between two steps are interpolated only along axes that ascend with the step (`is_path`), never over a metric;
// nothing is extrapolated.
#include "app/curves/curves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "storage/analysis/training_progress.h"

namespace stepladder {
namespace {

// The place of the last step on a long run's clock, by the totals of all its times.
double milliseconds_before(const Points& total_ms, std::int64_t clock_starts_after) {
  const auto last = static_cast<double>(clock_starts_after);
  const auto end = std::ranges::upper_bound(total_ms.x, last);
  return end == total_ms.x.begin() ? 0 : total_ms.y[static_cast<std::size_t>(end - total_ms.x.begin()) - 1];
}

// The y at x of the line through (from, to); missing beyond its ends.
double between(const std::vector<double>& from, const std::vector<double>& to, double x) {
  if (from.empty() || !(x >= from.front() && x <= from.back())) return missing;
  const auto k = static_cast<std::size_t>(std::ranges::lower_bound(from, x) - from.begin());
  if (k == 0 || from[k] == x) return to[k];
  return to[k - 1] + (x - from[k - 1]) / (from[k] - from[k - 1]) * (to[k] - to[k - 1]);
}

template <class Join>
Points joined(const Points& run, const Points& base, Join join) {
  Points out{.is_path = run.is_path && base.is_path};
  std::size_t k = 0;
  for (std::size_t i = 0; i < run.x.size(); ++i) {
    while (k < base.x.size() && base.x[k] < run.x[i]) ++k;
    if (k == base.x.size()) break;
    double other = base.y[k];
    if (base.x[k] != run.x[i]) {
      if (k == 0) continue;
      const double share = (run.x[i] - base.x[k - 1]) / (base.x[k] - base.x[k - 1]);
      other = base.y[k - 1] + share * (base.y[k] - base.y[k - 1]);
    }
    out.x.push_back(run.x[i]);
    out.y.push_back(join(run.y[i], other));
  }
  return out;
}

// Every x of the runs, once. At most twice as many as the longest run has; else as many as it has, evenly chosen.
std::vector<double> all_x(std::span<const Points> runs) {
  std::vector<double> all;
  std::size_t longest = 0;
  for (const Points& run : runs) {
    const auto middle = all.insert(all.end(), run.x.begin(), run.x.end());
    std::inplace_merge(all.begin(), middle, all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    longest = std::max(longest, run.x.size());
  }
  if (all.size() <= 2 * longest) return all;
  std::vector<double> chosen(longest, all.front());
  for (std::size_t i = 1; i < longest; ++i) chosen[i] = all[i * (all.size() - 1) / (longest - 1)];
  return chosen;
}

// y at x, interpolated; `at` is the first point that isn't before x. Missing beyond the run's ends; NaN or infinite
// next to such a point. Runs whose points aren't a path have values at their points only.
double value_before(const Points& run, std::size_t at, double x) {
  if (at == run.x.size()) return missing;
  if (run.x[at] == x) return run.y[at];
  if (at == 0 || !run.is_path) return missing;
  const double share = (x - run.x[at - 1]) / (run.x[at] - run.x[at - 1]);
  return run.y[at - 1] + share * (run.y[at] - run.y[at - 1]);
}

// Adds a place only if it is beyond the last one: both columns ascend.
void add_place(Points& places, double step, double place) {
  if (is_missing(place) || (!places.empty() && !(place > places.y.back()))) return;
  places.x.push_back(step);
  places.y.push_back(place);
}

}  // namespace

std::vector<double> axis_values(const Run& run, const Series& series, Axis axis) {
  std::vector<double> x(series.size(), missing);
  TrainingProgress progress(run);
  double first_at = missing;
  for (std::size_t i = 0; i < series.size(); ++i) {
    switch (axis) {
      case Axis::step:
        x[i] = static_cast<double>(series.step[i]);
        break;
      case Axis::tokens:
      case Axis::flops:
        progress.add(series, i);
        if (is_missing(progress.tokens())) break;
        x[i] = axis == Axis::tokens                    ? progress.tokens()
               : is_missing(run.model_flops_per_token) ? missing
                                                       : progress.tokens() * run.model_flops_per_token;
        break;
      case Axis::time:
        progress.add(series, i);
        x[i] = progress.seconds();
        break;
      case Axis::wall:
        if (is_missing(first_at)) first_at = series.at[i];
        if (!is_missing(series.at[i])) x[i] = series.at[i] - first_at;
        break;
      case Axis::loss:
        x[i] = series.loss[i];
        break;
      case Axis::lr:
        x[i] = series.lr[i];
        break;
      case Axis::grad_norm:
        x[i] = series.grad_norm[i];
        break;
    }
  }
  return x;
}

std::string_view title_of(Quantity quantity) {
  const QuantityFacts* const field = facts_of(quantity);
  return field ? field->title : to_string(quantity);
}

std::string_view unit_of(Quantity quantity) {
  const QuantityFacts* const field = facts_of(quantity);
  return field ? field->unit : "";
}

std::string_view title_of(Axis axis) {
  return by_enum<Axis>("step", "tokens", "training time, s", "wall clock, s", "FLOPs (6N)", "loss", "learning rate",
                       "gradient norm")[axis];
}

bool is_metric(Axis axis) {
  return axis == Axis::loss || axis == Axis::lr || axis == Axis::grad_norm;
}

Points places_of(const Run& run, const Series& excerpt, const Points& total_ms, Axis axis) {
  if (axis != Axis::time) return places_of(run, excerpt, axis);
  Points places;
  const std::int64_t starts_after = run.printed.clock_starts_after;
  const double before = milliseconds_before(total_ms, starts_after);
  for (std::size_t i = 0; i < total_ms.x.size(); ++i) {
    if (total_ms.x[i] > static_cast<double>(starts_after) || starts_after == 0)
      add_place(places, total_ms.x[i], (total_ms.y[i] - before) / 1000);
  }
  return places;
}

Points places_of(const Run& run, const Series& steps, Axis axis) {
  Points places;
  const std::vector<double> x = axis_values(run, steps, axis);
  for (std::size_t i = 0; i < x.size(); ++i) add_place(places, static_cast<double>(steps.step[i]), x[i]);
  return places;
}

Points placed(const Points& by_step, const Points& places) {
  Points points;
  for (std::size_t i = 0; i < by_step.x.size(); ++i) {
    const double place = between(places.x, places.y, by_step.x[i]);
    if (is_missing(place)) continue;
    points.x.push_back(place);
    points.y.push_back(by_step.y[i]);
  }
  return points;
}

MeanCurve placed(const MeanCurve& by_step, const Points& places) {
  return {.mean = placed(by_step.mean, places),
          .low = placed(Points{by_step.mean.x, by_step.low}, places).y,
          .high = placed(Points{by_step.mean.x, by_step.high}, places).y,
          .runs = {}};
}

double step_at(const Points& places, double place) {
  return places.empty() ? missing : between(places.y, places.x, std::clamp(place, places.y.front(), places.y.back()));
}

Points points_of(const Run& run, const Series& series, Quantity quantity, Axis axis) {
  const std::vector<double> x = axis_values(run, series, axis);
  Points points{.is_path = !is_metric(axis)};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double y = value_of(series, i, quantity);
    if (is_missing(y) || !std::isfinite(x[i])) continue;
    points.x.push_back(x[i]);
    points.y.push_back(y);
  }
  if (!std::ranges::is_sorted(points.x)) {
    std::vector<std::size_t> order(points.x.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return points.x[a] < points.x[b]; });
    Points sorted{.is_path = points.is_path};
    for (const std::size_t i : order) {
      sorted.x.push_back(points.x[i]);
      sorted.y.push_back(points.y[i]);
    }
    return sorted;
  }
  return points;
}

Points difference(const Points& run, const Points& base) {
  return joined(run, base, [](double a, double b) { return a - b; });
}

Points ratio(const Points& run, const Points& base) {
  return joined(run, base, [](double a, double b) { return b != 0 ? a / b : missing; });
}

MeanCurve mean_of(std::span<const Points> runs) {
  MeanCurve curve;
  curve.mean.is_path = std::ranges::all_of(runs, &Points::is_path);
  std::vector<std::size_t> at(runs.size(), 0);  // each run's first point that isn't before x
  for (const double x : all_x(runs)) {
    double sum = 0;
    double low = missing;
    double high = missing;
    int finite = 0;
    bool any = false;
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const Points& run = runs[r];
      while (at[r] < run.x.size() && run.x[at[r]] < x) ++at[r];
      const double y = value_before(run, at[r], x);
      any = any || !is_missing(y);
      if (!std::isfinite(y)) continue;
      sum += y;
      low = finite == 0 ? y : std::min(low, y);
      high = finite == 0 ? y : std::max(high, y);
      ++finite;
    }
    if (!any) continue;
    const double nothing = std::numeric_limits<double>::quiet_NaN();
    curve.mean.x.push_back(x);
    curve.mean.y.push_back(finite > 0 ? sum / finite : nothing);
    curve.low.push_back(finite > 0 ? low : nothing);
    curve.high.push_back(finite > 0 ? high : nothing);
    curve.runs.push_back(finite);
  }
  return curve;
}

RangeStatistics statistics_between(const Points& points, double x_low, double x_high) {
  RangeStatistics found;
  double sum = 0;
  const auto from = std::ranges::lower_bound(points.x, x_low) - points.x.begin();
  for (auto i = static_cast<std::size_t>(from); i < points.x.size() && points.x[i] <= x_high; ++i) {
    const double y = points.y[i];
    if (is_missing(y)) continue;
    found.last = y;
    if (!std::isfinite(y)) continue;
    found.low = found.count == 0 ? y : std::min(found.low, y);
    found.high = found.count == 0 ? y : std::max(found.high, y);
    sum += y;
    ++found.count;
  }
  if (found.count > 0) found.mean = sum / static_cast<double>(found.count);
  return found;
}

double value_at(const Points& points, double x) {
  if (points.empty() || x < points.x.front() || x > points.x.back()) return missing;
  const auto after = std::ranges::lower_bound(points.x, x);
  auto i = static_cast<std::size_t>(after - points.x.begin());
  if (i > 0 && x - points.x[i - 1] < points.x[i] - x) --i;
  return points.y[i];
}

}  // namespace stepladder
