// Builds the figures of a study from measurements. Long runs are drawn from overviews, as in the window: the mean in a
// band from the lowest to the highest value, with the number of values in the caption. A new figure gets a FigureKind
// and a line in `kind_names`.
#include "app/figures/run_figures.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "app/curves/overview_curve.h"
#include "app/text/format.h"
#include "storage/by_enum.h"

namespace stepladder {
namespace {

constexpr auto kind_names =
    by_enum<FigureKind, std::string_view>("ladder", "loss", "throughput", "step-time", "dt", "loss-difference");

// Bars that differ by more than this have a logarithmic axis.
constexpr double most_on_linear_axis = 20;

std::string x_label(XAxis x) {
  return x == XAxis::tokens ? "tokens" : x == XAxis::time ? "time in steps, s" : "step";
}

const Overview* overview_of(const LoadedRun& loaded, Quantity quantity) {
  const auto found = std::ranges::find(loaded.overviews, quantity, &Overview::quantity);
  return found == loaded.overviews.end() ? nullptr : &*found;
}

Axis axis_of(XAxis x) {
  return x == XAxis::tokens ? Axis::tokens : x == XAxis::time ? Axis::time : Axis::step;
}

// The places of a long run's steps on the axis, as a line over the steps. Empty if they are unknown.
Points places_on(const LoadedRun& loaded, XAxis x) {
  const Overview* step_times = overview_of(loaded, Quantity::dt_ms);
  return places_of(loaded.run, loaded.series, step_times ? totals_of(*step_times) : Points{}, axis_of(x));
}

// A long run's points along the axis; without x if the places of its steps are unknown.
Points along(const LoadedRun& loaded, XAxis x, Points by_step) {
  if (x == XAxis::step) return by_step;
  const Points places = places_on(loaded, x);
  if (!places.empty()) return placed(by_step, places);
  by_step.x.clear();
  return by_step;
}

// The axis position of each step of the series, missing where it is unknown; empty if it is unknown for all.
std::vector<double> x_values(const LoadedRun& loaded, XAxis x) {
  std::vector<double> values = axis_values(loaded.run, loaded.series, axis_of(x));
  const bool any = std::ranges::any_of(values, [](double value) { return !is_missing(value); });
  return any ? values : std::vector<double>{};
}

// A quantity of each step, converted to the drawn value. `tokens`: of that step.
struct Column {
  Quantity quantity = Quantity::loss;
  std::function<double(double value, std::int64_t tokens)> shown;
};

// A long run as the window draws it: the mean of each bucket of its overview, in a band from the lowest to the highest
// value.
FigureCurve curve_of(const LoadedRun& loaded, XAxis x, const Overview& overview,
                     const std::function<double(double)>& shown) {
  FigureCurve curve;
  MeanCurve means = means_of(overview);
  for (std::size_t i = 0; i < means.mean.y.size(); ++i) {
    means.mean.y[i] = shown(means.mean.y[i]);
    const double low = shown(means.low[i]);  // a throughput is lowest if the step took longest
    const double high = shown(means.high[i]);
    means.low[i] = std::min(low, high);
    means.high[i] = std::max(low, high);
  }
  for (const Bucket& bucket : overview.buckets) {  // the places of the crosses
    if (bucket.not_finite == 0) continue;
    const auto step = static_cast<double>(bucket.last_step);
    const auto at = std::ranges::upper_bound(means.mean.x, step) - means.mean.x.begin();
    means.mean.y.insert(means.mean.y.begin() + at, std::numeric_limits<double>::quiet_NaN());
    means.low.insert(means.low.begin() + at, missing);
    means.high.insert(means.high.begin() + at, missing);
    means.mean.x.insert(means.mean.x.begin() + at, step);
  }
  if (x != XAxis::step) {
    const Points places = places_on(loaded, x);
    if (places.empty())
      means.mean.x.clear();
    else
      means = placed(means, places);
  }
  curve.x = std::move(means.mean.x);
  curve.y = std::move(means.mean.y);
  if (!overview.exact()) {
    curve.low = std::move(means.low);
    curve.high = std::move(means.high);
    curve.behind = overview.values();
  }
  curve.not_finite = overview.not_finite();
  return curve;
}

// The curve of all steps, or of a long run's means and range.
FigureCurve curve_of(const LoadedRun& loaded, XAxis x, const Column& column) {
  FigureCurve curve;
  const auto shown = [&](double value, std::int64_t tokens) {
    return is_missing(value) ? missing : column.shown(value, tokens > 0 ? tokens : loaded.run.tokens_per_step);
  };
  if (!loaded.is_excerpt()) {
    const std::vector<double> at = x_values(loaded, x);
    for (std::size_t i = 0; i < loaded.series.size(); ++i) {
      const double value = shown(value_of(loaded.series, i, column.quantity), loaded.series.tokens[i]);
      if (at.empty()) curve.y.push_back(value);
      if (at.empty() || is_missing(at[i])) continue;
      curve.x.push_back(at[i]);
      curve.y.push_back(value);
    }
    return curve;
  }
  const Overview* overview = overview_of(loaded, column.quantity);
  return overview ? curve_of(loaded, x, *overview, [&](double value) { return shown(value, 0); }) : curve;
}

// A curve of times that can't be trusted says so.
std::string timed_label(const StudyRung& rung) {
  return rung.label + (rung.is_trusted() ? "" : ", " + std::string(to_string(rung.judged.trust)));
}

void note_doubts(Figure& figure, const Study& study) {
  for (const StudyRung& rung : study.rungs)
    for (const Flag& flag : rung.judged.flags)
      if (flag.trust() != Trust::trusted) figure.caption.push_back(rung.label + ": " + flag.why);
}

void add_curves(Figure& figure, const Study& study, XAxis x, const Column& column) {
  std::size_t left_out = 0;
  for (const LoadedRun& loaded : study.runs) {
    const StudyRung& rung = study.rung_of(loaded.run);
    FigureCurve curve = curve_of(loaded, x, column);
    if (std::ranges::all_of(curve.y, [](double value) { return is_missing(value); })) continue;
    if (curve.x.empty()) {
      ++left_out;
      continue;
    }
    const bool first = rung.first == &loaded;
    curve.label = column.quantity == Quantity::dt_ms || x == XAxis::time ? timed_label(rung) : rung.label;
    curve.style = static_cast<int>(&rung - study.rungs.data());
    curve.is_thin = !first;
    curve.in_legend = first;
    figure.curves.push_back(std::move(curve));
  }
  if (left_out > 0)
    figure.caption.insert(figure.caption.begin(), plural(left_out, "run is", "runs are") +
                                                      " left out: no step has its " +
                                                      (x == XAxis::tokens ? "tokens" : "time") + ".");
}

// "3,000 points"; "means and range of 250,000 values" if a run is too long to draw each.
std::string drawn_text(const Figure& figure) {
  std::int64_t points = 0;
  std::int64_t behind = 0;
  for (const FigureCurve& curve : figure.curves) {
    behind += curve.behind;
    if (curve.behind == 0) points += std::ranges::count_if(curve.y, [](double y) { return std::isfinite(y); });
  }
  const std::string means = behind > 0 ? "means and range of " + grouped(behind) + " values" : "";
  return points > 0 || behind == 0 ? grouped(points) + " points" + (behind > 0 ? ", " + means : "") : means;
}

// Adds a note of how many values of each curve cannot be drawn, and where the first is.
void note_not_finite(Figure& figure) {
  for (const FigureCurve& curve : figure.curves) {
    std::int64_t count = 0;
    double first = 0;
    for (std::size_t i = 0; i < curve.y.size(); ++i) {
      if (is_missing(curve.y[i]) || std::isfinite(curve.y[i])) continue;
      if (count++ == 0) first = curve.x[i];
    }
    count = std::max(count, curve.not_finite);
    if (count > 0)
      figure.caption.push_back(curve.label + ": " + plural(count, "value is", "values are") +
                               " NaN or infinite (crosses at the upper edge), the first at " + compact(first) + ".");
  }
}

void add_common_caption(Figure& figure, const Study& study) {
  note_not_finite(figure);
  for (std::string& line :
       std::vector{excerpt_line(study), hardware_line(study) + ".", sample_line(study), version_line(study)})
    if (!line.empty()) figure.caption.push_back(std::move(line));
}

Figure curves_over_steps(const Study& study, XAxis x, std::string title, std::string y_label, const Column& column) {
  Figure figure{.title = std::move(title), .subtitle = study.title};
  figure.x.label = x_label(x);
  figure.y.label = std::move(y_label);
  add_curves(figure, study, x, column);
  figure.subtitle += "; " + drawn_text(figure);
  return figure;
}

// Step times or rates that differ this much are readable at both ends only on a log axis.
bool needs_log_axis(const std::vector<FigureCurve>& curves, bool of_x, double factor) {
  double least = missing;
  double most = missing;
  for (const FigureCurve& curve : curves) {
    for (const double value : of_x ? curve.x : curve.y) {
      if (!std::isfinite(value) || value <= 0) continue;
      least = is_missing(least) ? value : std::min(least, value);
      most = is_missing(most) ? value : std::max(most, value);
    }
  }
  return !is_missing(least) && most > factor * least;
}

void use_log_axis(FigureAxis& axis) {
  axis.is_log = true;
  axis.label += ", log scale";
}

Figure times_over_steps(const Study& study, XAxis x, std::string title, std::string y_label,
                        std::function<double(double dt_ms, std::int64_t tokens)> value) {
  Figure figure =
      curves_over_steps(study, x, std::move(title), std::move(y_label), {Quantity::dt_ms, std::move(value)});
  figure.y.from_zero = true;
  if (needs_log_axis(figure.curves, false, most_on_linear_axis)) use_log_axis(figure.y);
  note_doubts(figure, study);
  figure.caption.push_back(timing_line(study));
  add_common_caption(figure, study);
  return figure;
}

}  // namespace

std::optional<FigureKind> figure_kind(std::string_view name) {
  return kind_names.find(name);
}

std::vector<std::string> figure_names() {
  return {kind_names.values.begin(), kind_names.values.end()};
}

std::string_view to_string(FigureKind kind) {
  return kind_names[kind];
}

CellTone trust_tone(const StudyRung& rung) {
  if (rung.judged.trust == Trust::trusted) return rung.judged.is_checked ? CellTone::good : CellTone::quiet;
  return rung.judged.trust == Trust::impossible ? CellTone::bad : CellTone::warning;
}

CellTone loss_tone(const StudyRung& rung) {
  if (rung.is_baseline) return CellTone::quiet;
  using enum CellTone;
  return by_enum<LossVerdict>(good, good, warning, quiet, bad, quiet)[rung.judged.loss.verdict];
}

Figure make_figure(FigureKind kind, const Study& study, XAxis x) {
  if (kind == FigureKind::loss) return loss_figure(study, x);
  if (kind == FigureKind::throughput) return throughput_figure(study, x);
  if (kind == FigureKind::step_time) return step_time_figure(study, x);
  if (kind == FigureKind::dt) return ecdf_figure(study);
  if (kind == FigureKind::loss_difference) return loss_difference_figure(study, x);
  return ladder_figure(study);
}

Figure ladder_figure(const Study& study) {
  Figure figure{.title = study.title, .subtitle = headline(study)};
  figure.heads = {study.rate_unit, "vs previous", "vs baseline", "95 %", "loss", "plausible?"};
  double least = missing;
  double most = missing;
  bool any_limit = false;
  bool any_doubt = false;
  bool any_limit_beyond = false;
  for (const StudyRung& rung : study.rungs) {
    const CellTone number = rung.is_trusted() ? CellTone::neutral : CellTone::quiet;
    FigureBar bar{.label = rung.label,
                  .note = rung.changed,
                  .value = rung.rate,
                  .whisker = rung.rate_ci95,
                  .limit = rung.limit,
                  .is_trusted = rung.is_trusted(),
                  .style = static_cast<int>(figure.bars.size())};
    bar.cells = {{compact(rung.rate), number},
                 {rung.is_baseline ? "" : factor_text(rung.judged.over_previous.factor), number},
                 {factor_text(rung.judged.over_baseline.factor), number},
                 {rung.is_baseline ? "" : factor_interval_text(rung), CellTone::quiet},
                 {loss_verdict_text(rung), loss_tone(rung)},
                 {trust_text(rung), trust_tone(rung)}};
    if (rung.rate > 0) {
      least = is_missing(least) ? rung.rate : std::min(least, rung.rate);
      most = is_missing(most) ? rung.rate : std::max(most, rung.rate);
    }
    any_doubt |= !rung.is_trusted();
    figure.bars.push_back(std::move(bar));
  }
  figure.x = {.label = "throughput, " + study.rate_unit, .from_zero = true};
  if (!is_missing(least) && most > most_on_linear_axis * least) {
    figure.x.from_zero = false;
    use_log_axis(figure.x);
  }
  // A limit far above all bars would squeeze them; the last column has its number.
  for (FigureBar& bar : figure.bars) {
    if (is_missing(bar.limit)) continue;
    if (!is_missing(most) && bar.limit > (figure.x.is_log ? 4 : 1.5) * most) {
      bar.limit = missing;
      any_limit_beyond = true;
    } else {
      any_limit = true;
    }
  }
  std::string legend =
      "Bars: median of the steady steps; whiskers: its 95 % interval, from a bootstrap over blocks of steps and, with "
      "repeats, the spread between runs.";
  if (any_doubt) legend += " Hatched: impossible or doubtful.";
  if (any_limit)
    legend += " Red tick: the hardware's dense peak in that precision, at 6 N FLOPs per token.";
  else if (any_limit_beyond)
    legend += " The hardware's peak is beyond the axis.";
  figure.caption.push_back(std::move(legend));
  figure.caption.push_back(timing_line(study));
  add_common_caption(figure, study);
  return figure;
}

Figure loss_figure(const Study& study, XAxis x) {
  Figure figure = curves_over_steps(study, x, "Loss", "loss, nats per token",
                                    {Quantity::loss, [](double loss, std::int64_t) { return loss; }});
  std::vector<FigureCurve> validated;
  bool any_training = !figure.curves.empty();
  for (const LoadedRun& loaded : study.runs) {
    const Series& series = loaded.series;
    const StudyRung& rung = study.rung_of(loaded.run);
    if (rung.first != &loaded) continue;
    const Overview* overview = overview_of(loaded, Quantity::val_loss);
    const std::vector<double> at = x_values(loaded, x);
    FigureCurve dots{
        .label = rung.label + ", validation", .style = static_cast<int>(&rung - study.rungs.data()), .is_dotted = true};
    for (std::size_t i = 0; !overview && i < at.size(); ++i) {
      if (is_missing(series.val_loss[i]) || is_missing(at[i])) continue;
      dots.x.push_back(at[i]);
      dots.y.push_back(series.val_loss[i]);
    }
    if (overview) {
      Points means = along(loaded, x, means_of(*overview).mean);
      dots.x = std::move(means.x);
      dots.y = std::move(means.y);
      dots.not_finite = overview->not_finite();
    }
    if (!dots.x.empty()) validated.push_back(std::move(dots));
  }
  const bool any_validation = !validated.empty();
  // The caption explains the dots if each curve has its own.
  for (FigureCurve& dots : validated) {
    dots.in_legend = !any_training;
    figure.curves.push_back(std::move(dots));
  }
  const double floor = study.runs.front().run.loss_floor;
  if (!is_missing(floor)) figure.marks.push_back({floor, "entropy of the source"});
  figure.caption.push_back("Loss of each step's tokens before the update, not smoothed." +
                           std::string(any_validation ? " Dots: validation loss." : ""));
  add_common_caption(figure, study);
  return figure;
}

Figure throughput_figure(const Study& study, XAxis x) {
  const bool steps = study.rate_unit == "steps/s";
  return times_over_steps(study, x, "Throughput", study.rate_unit, [steps](double dt_ms, std::int64_t tokens) {
    if (!(dt_ms > 0) || (!steps && tokens <= 0)) return missing;
    return (steps ? 1 : static_cast<double>(tokens)) * 1000 / dt_ms;
  });
}

Figure step_time_figure(const Study& study, XAxis x) {
  return times_over_steps(study, x, "Step time", "step time, ms", [](double dt_ms, std::int64_t) { return dt_ms; });
}

Figure ecdf_figure(const Study& study) {
  Figure figure{.title = "Step time, cumulative", .subtitle = study.title};
  figure.x.label = "step time, ms";
  figure.y = {.label = "share of steady steps", .from_zero = true};
  for (const LoadedRun& loaded : study.runs) {
    std::vector<double> values = steady_dt_ms(loaded.series, loaded.summary);
    if (values.empty()) continue;
    std::ranges::sort(values);
    const StudyRung& rung = study.rung_of(loaded.run);
    const bool first = rung.first == &loaded;
    FigureCurve curve{.label = timed_label(rung),
                      .style = static_cast<int>(&rung - study.rungs.data()),
                      .is_thin = !first,
                      .is_stairs = true,
                      .in_legend = first};
    // From zero at the fastest step; equal times are one stair.
    curve.x.push_back(values.front());
    curve.y.push_back(0);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i + 1 < values.size() && values[i + 1] == values[i]) continue;
      curve.x.push_back(values[i]);
      curve.y.push_back(static_cast<double>(i + 1) / static_cast<double>(values.size()));
    }
    figure.curves.push_back(std::move(curve));
  }
  if (needs_log_axis(figure.curves, true, 5)) use_log_axis(figure.x);
  figure.caption.push_back("Empirical distribution: the share of a run's steady steps that took at most this long.");
  note_doubts(figure, study);
  figure.caption.push_back(timing_line(study));
  add_common_caption(figure, study);
  return figure;
}

namespace {

// A run's losses over its steps; for a long run the means of about as many buckets as in the window, since the
// difference of finer ones is mostly noise.
Points losses_of(const LoadedRun& loaded) {
  constexpr std::size_t most_buckets = 512;
  if (const Overview* overview = overview_of(loaded, Quantity::loss))
    return means_of(coarser(*overview, most_buckets)).mean;
  return points_of(loaded.run, loaded.series, Quantity::loss, Axis::step);
}

// The differences at equal steps; for long runs those of means, as in the window.
Points loss_gap(const LoadedRun& run, const LoadedRun& base, XAxis x) {
  if (run.is_excerpt() || base.is_excerpt()) return along(run, x, difference(losses_of(run), losses_of(base)));
  const Series& theirs = base.series;
  const Series& own = run.series;
  const std::vector<double> at = x_values(run, x);
  Points gap;
  for (std::size_t i = 0, j = 0; i < theirs.size() && j < at.size();) {
    if (theirs.step[i] != own.step[j]) {
      theirs.step[i] < own.step[j] ? ++i : ++j;
      continue;
    }
    if (!is_missing(theirs.loss[i]) && !is_missing(own.loss[j]) && !is_missing(at[j])) {
      gap.x.push_back(at[j]);
      gap.y.push_back(own.loss[j] - theirs.loss[i]);
    }
    ++i;
    ++j;
  }
  return gap;
}

}  // namespace

Figure loss_difference_figure(const Study& study, XAxis x) {
  Figure figure{.title = "Loss against the baseline", .subtitle = study.title};
  figure.x.label = x_label(x);
  figure.y.label = "loss minus baseline's, nats";
  const double band = loss_tolerance_nats;
  bool others = false;
  bool any_long = false;
  std::string not_comparable;
  for (const StudyRung& rung : study.rungs) {
    if (rung.is_baseline || rung.first->series.empty()) continue;
    const auto named = std::ranges::find_if(
        study.rungs, [&](const StudyRung& other) { return other.judged.rung == rung.judged.loss_against; });
    const StudyRung& against = named == study.rungs.end() ? study.rungs.front() : *named;
    if (rung.judged.loss.verdict == LossVerdict::not_comparable) {
      not_comparable += (not_comparable.empty() ? "" : ", ") + rung.label;
      continue;
    }
    others |= !against.is_baseline;
    FigureCurve curve{.label = rung.label + (against.is_baseline ? "" : " (vs " + against.label + ")"),
                      .style = static_cast<int>(&rung - study.rungs.data())};
    Points gap = loss_gap(*rung.first, *against.first, x);
    any_long |= against.first->is_excerpt() || rung.first->is_excerpt();
    curve.x = std::move(gap.x);
    curve.y = std::move(gap.y);
    if (!curve.x.empty()) figure.curves.push_back(std::move(curve));
  }
  figure.marks.push_back({0, ""});
  figure.bands.push_back({-band, band, "counts as the same"});
  figure.caption.push_back(
      std::string(any_long ? "At equal steps; of long runs the difference of the means of neighbouring steps. "
                           : "At equal steps, not smoothed. ") +
      "Grey band: the verdict is \"same\" if the interval of the mean over the last quarter lies within " +
      loss_text(band) + " nats." +
      (others ? " Rungs after one that changes training results are compared with that rung." : ""));
  if (!not_comparable.empty())
    figure.caption.push_back(
        "Left out, since their steps don't hold the same tokens as the baseline's: " + not_comparable + ".");
  add_common_caption(figure, study);
  return figure;
}

}  // namespace stepladder
