// Derives Compare's lines: which runs are one line, their means and ranges, the gaps from the baseline's, short names,
// and where each reached a target.
#include "app/desktop/models/compared_lines.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "app/curves/smooth.h"
#include "app/text/short_names.h"
#include "storage/analysis/metric_comparison.h"
#include "storage/analysis/recipe_facts.h"
#include "storage/name_pattern.h"

namespace stepladder {
namespace {

// Equal for runs of one line; empty for a run that is alone.
std::string group_of(const Run& run, const std::string& group_by) {
  if (group_by.empty()) return "";
  if (group_by == group_by_rung)
    return run.ladder ? std::to_string(*run.ladder) + " " + std::to_string(run.rung) : std::string();
  const std::string name = group_by.substr(std::string_view(group_by_recipe).size());
  const auto values = recipe_values(run);
  const auto value = values.find(name);
  return value == values.end() ? "" : name + " = " + value->second;
}

}  // namespace

std::vector<RunsOfLine> grouped_by_line(const std::vector<RunSnapshot>& runs, const std::string& group_by) {
  std::vector<RunsOfLine> lines;
  std::map<std::string, std::size_t> places;
  for (const RunSnapshot& run : runs) {
    std::string group = group_of(run.run, group_by);
    if (!group.empty()) {
      const auto [place, is_new] = places.try_emplace(group, lines.size());
      if (!is_new) {
        lines[place->second].runs.push_back(&run);
        continue;
      }
    }
    lines.push_back({std::move(group), {&run}});
  }
  if (group_by.empty() || group_by == group_by_rung) return lines;
  const auto value = [](const RunsOfLine& line) {
    const std::size_t at = line.group.find(" = ");
    return at == std::string::npos ? std::string_view() : std::string_view(line.group).substr(at + 3);
  };
  std::ranges::stable_sort(lines, [&](const RunsOfLine& a, const RunsOfLine& b) {
    if (a.group.empty() != b.group.empty()) return b.group.empty();  // runs without a value at the end
    return value_before(value(a), value(b));
  });
  return lines;
}

std::size_t place_of(const std::vector<RunsOfLine>& lines, RunId base) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (const RunSnapshot* run : lines[i].runs)
      if (run->run.id == base) return i;
  }
  return 0;
}

namespace {

// Removes the words with which all names begin; in one ladder also if a few runs were renamed, unless what remains of
// two names would be equal.
void shorten_labels(std::vector<ComparedLine>& lines, bool is_one_ladder) {
  if (lines.size() < 2) return;
  std::vector<std::string> names;
  for (const ComparedLine& line : lines) names.push_back(line.label);
  const std::string common = common_beginning(names, is_one_ladder ? lines.size() / 2 + 1 : lines.size());
  if (common.empty()) return;
  for (std::string& name : names) name = without_beginning(name, common);
  for (std::size_t i = 0; i < lines.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (names[i] == names[k] && lines[i].label != lines[k].label) return;
  for (std::size_t i = 0; i < lines.size(); ++i) lines[i].label = std::move(names[i]);
}

// Numbers runs of the same name.
void number_equal_labels(std::vector<ComparedLine>& lines) {
  std::map<std::string, int> named;
  for (const ComparedLine& line : lines) ++named[line.label];
  for (ComparedLine& line : lines)
    if (named[line.label] > 1) line.label += ", run " + std::to_string(line.runs.front());
}

// Smoothing shows a trend in noise. A validation loss is a mean over many batches already, and is quoted by its value.
bool can_be_smoothed(Quantity quantity) {
  return quantity != Quantity::val_loss;
}

bool is_one_ladder(const std::vector<RunSnapshot>& runs) {
  return std::ranges::all_of(
      runs, [&](const RunSnapshot& run) { return run.run.ladder && run.run.ladder == runs.front().run.ladder; });
}

// One run's part of a line.
struct RunCurve {
  Points points;
  double steady_from = missing;
  MeanCurve means;  // empty: the points are the values
  std::int64_t behind = 0;
  double last = missing;  // of the values behind an overview
  bool ends_not_finite = false;
  std::int64_t not_finite = 0;
};

RunCurve curve_of(const RunSnapshot& run, Quantity quantity, Axis axis, const Points& places) {
  if (is_field(quantity) && (!run.is_excerpt || is_metric(axis))) {
    RunCurve curve{.points = points_of(run.run, *run.series, quantity, axis)};
    const auto warm = static_cast<std::size_t>(run.known.warmup_steps);
    if (!is_metric(axis) && warm > 0 && warm < curve.points.x.size()) curve.steady_from = curve.points.x[warm];
    return curve;
  }
  if (is_metric(axis)) return {};  // a metric has no value at a loss
  const OverviewCurve* coarse = run.overview(quantity);
  if (!coarse) return {};
  const bool is_step = axis == Axis::step;
  RunCurve curve{.points = is_step ? coarse->points : placed(coarse->points, places),
                 .means = is_step ? coarse->means : placed(coarse->means, places),
                 .behind = coarse->behind(),
                 .not_finite = coarse->not_finite};
  const std::vector<Bucket>& buckets = coarse->overview.buckets;
  if (quantity == Quantity::loss) {
    curve.last = run.known.loss_last;
  } else if (!buckets.empty()) {
    const Bucket& end = buckets.back();
    curve.ends_not_finite = end.count == 0;
    if (end.not_finite == 0) curve.last = end.last;
  }
  return curve;
}

// All points of several runs over a metric, where a mean would have no meaning.
Points together(const std::vector<Points>& runs) {
  std::vector<std::pair<double, double>> all;
  for (const Points& run : runs)
    for (std::size_t i = 0; i < run.x.size(); ++i) all.emplace_back(run.x[i], run.y[i]);
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.first < b.first; });
  Points points{.is_path = false};
  for (const auto& [x, y] : all) {
    points.x.push_back(x);
    points.y.push_back(y);
  }
  return points;
}

void fill(ComparedMetric& metric, const std::vector<const RunSnapshot*>& runs, Quantity quantity,
          const ComparisonOptions& options, const std::map<RunId, Points>& places) {
  const auto curve = [&](const RunSnapshot& run) {
    const auto found = places.find(run.run.id);
    return curve_of(run, quantity, options.axis, found == places.end() ? Points{} : found->second);
  };
  if (runs.size() == 1) {
    RunCurve only = curve(*runs.front());
    metric.points = std::move(only.points);
    metric.means = std::move(only.means.mean);
    metric.low = std::move(only.means.low);
    metric.high = std::move(only.means.high);
    metric.behind = only.behind;
    metric.last = only.last;
    metric.ends_not_finite = only.ends_not_finite;
    metric.steady_from = only.steady_from;
    metric.not_finite = static_cast<std::size_t>(only.not_finite);
  } else {
    std::vector<Points> each;
    for (const RunSnapshot* run : runs) {
      RunCurve one = curve(*run);
      if (!is_missing(one.steady_from) && !(one.steady_from <= metric.steady_from))
        metric.steady_from = one.steady_from;
      metric.behind += one.behind;
      metric.not_finite += static_cast<std::size_t>(one.not_finite);
      each.push_back(one.means.mean.empty() ? std::move(one.points) : std::move(one.means.mean));
    }
    if (is_metric(options.axis)) {
      metric.points = together(each);
    } else {
      MeanCurve mean = mean_of(each);
      metric.points = std::move(mean.mean);
      metric.low = std::move(mean.low);
      metric.high = std::move(mean.high);
      metric.runs = std::move(mean.runs);
    }
  }
  const Points& values = metric.values();
  metric.levels.follow(values.x, values.y);
  if (options.smoothing > 0 && values.is_path && can_be_smoothed(quantity))
    metric.smoothed = smooth(values.x, values.y, options.smoothing);
}

LastGap gap_between(double x, double base, double value, bool is_estimate) {
  return {.x = x, .delta = delta_from(base, value), .factor = factor_from(base, value), .is_estimate = is_estimate};
}

LastGap last_gap(const ComparedMetric& metric, const ComparedMetric& base) {
  const Points& values = metric.values();
  const Points& reference = base.values();
  if (!values.is_path || !reference.is_path || values.empty() || reference.empty()) return {};
  const auto ends_lost = [](const ComparedMetric& of) {
    return of.ends_not_finite || (!is_missing(of.last) && !std::isfinite(of.last));
  };
  if (ends_lost(metric) || ends_lost(base)) return {};
  if (metric.means.empty() && base.means.empty()) {
    for (std::size_t i = values.x.size(), k = reference.x.size(); i > 0 && k > 0;) {
      const double x = values.x[i - 1];
      if (x < reference.x[k - 1])
        --k;
      else if (x > reference.x[k - 1])
        --i;
      else if (is_missing(values.y[i - 1]) || is_missing(reference.y[k - 1]))
        --i, --k;
      else if (std::isfinite(values.y[i - 1]) && std::isfinite(reference.y[k - 1]))
        return gap_between(x, reference.y[k - 1], values.y[i - 1], false);
      else
        return {};
    }
  } else if (values.x.back() == reference.x.back()) {
    const double last = metric.means.empty() ? values.y.back() : metric.last;
    const double last_of_base = base.means.empty() ? reference.y.back() : base.last;
    if (std::isfinite(last) && std::isfinite(last_of_base))
      return gap_between(values.x.back(), last_of_base, last, false);
  }
  const Points gap = difference(values, reference);
  for (std::size_t i = gap.x.size(); i > 0; --i) {
    if (!std::isfinite(gap.y[i - 1])) continue;
    const double value = value_at(values, gap.x[i - 1]);
    return gap_between(gap.x[i - 1], value - gap.y[i - 1], value, true);
  }
  return {};
}

void take_gap(ComparedMetric& metric, const ComparedMetric& base, Quantity quantity, const ComparisonOptions& options) {
  const Points& reference = base.values();
  if (!reference.is_path) return;
  if (&metric != &base) metric.last_gap = last_gap(metric, base);
  metric.gap =
      options.gap == Gap::difference ? difference(metric.values(), reference) : ratio(metric.values(), reference);
  metric.gap_levels.follow(metric.gap.x, metric.gap.y);
  if (options.smoothing > 0 && can_be_smoothed(quantity))
    metric.gap_smoothed = smooth(metric.gap.x, metric.gap.y, options.smoothing);
}

}  // namespace

ComparedCurves curves_of(const std::vector<RunSnapshot>& runs, RunId base, const ComparisonOptions& options) {
  ComparedCurves curves{.options = options};
  const std::vector<RunsOfLine> lines = grouped_by_line(runs, options.group_by);
  curves.base = place_of(lines, base);
  for (const RunsOfLine& of_line : lines) {
    ComparedLine& line = curves.lines.emplace_back();
    for (const RunSnapshot* run : of_line.runs) {
      line.runs.push_back(run->run.id);
      const bool has_overviews = run->is_excerpt || !run->overviews.empty();
      if (has_overviews && options.axis != Axis::step && !is_metric(options.axis))
        curves.places[run->run.id] = run->places(options.axis);
      if (run->is_excerpt && is_metric(options.axis)) line.excerpt += std::ssize(run->series->step);
    }
    const Run& first = of_line.runs.front()->run;
    const bool by_recipe = !of_line.group.empty() && options.group_by != group_by_rung;
    line.label = by_recipe ? of_line.group : first.name;
    line.name = line.label;
    if (of_line.runs.size() > 1 || by_recipe) line.label += ", n = " + std::to_string(of_line.runs.size());
    for (const Quantity metric : options.metrics)
      fill(line.metrics[metric], of_line.runs, metric, options, curves.places);
  }
  if (curves.lines.empty()) return curves;
  if (options.group_by.empty() || options.group_by == group_by_rung) shorten_labels(curves.lines, is_one_ladder(runs));
  number_equal_labels(curves.lines);
  const ComparedLine& reference = curves.lines[curves.base];
  for (ComparedLine& line : curves.lines)
    for (const Quantity metric : options.metrics)
      take_gap(line.metrics.at(metric), reference.of(metric), metric, options);
  return curves;
}

namespace {

// The place where a run reached the loss. The steps of an excerpt don't add up to the run's tokens and time, so these
// are taken from the place of the step.
TargetReached reached_by(const RunSnapshot& run, double target_loss) {
  TargetReached found = reach(run.run, *run.series, target_loss);
  if (!run.is_excerpt || found.step == 0) return found;
  const auto at_step = [&](Axis axis) {
    const Points places = run.places(axis);
    const Points here = placed({.x = {static_cast<double>(found.step)}, .y = {0}}, places);
    return here.empty() ? missing : here.x.front();
  };
  found.seconds = at_step(Axis::time);
  found.tokens = at_step(Axis::tokens);
  return found;
}

}  // namespace

ComparedTargets targets_of(const std::vector<RunSnapshot>& runs, const ComparisonOptions& options) {
  ComparedTargets targets{.loss = options.target_loss};
  for (const RunsOfLine& line : grouped_by_line(runs, options.group_by)) {
    std::vector<TargetReached> each;
    for (const RunSnapshot* run : line.runs) {
      each.push_back(reached_by(*run, options.target_loss));
      targets.is_estimate = targets.is_estimate || run->is_excerpt;
    }
    targets.lines[line.runs.front()->run.id] = target_of(each);
  }
  return targets;
}

}  // namespace stepladder
