#include "app/figures/run_figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "app/format.h"

namespace stepladder {
namespace {

struct NamedKind {
  FigureKind kind;
  std::string_view name;
};
constexpr std::array kinds{NamedKind{FigureKind::ladder, "ladder"},
                           NamedKind{FigureKind::loss, "loss"},
                           NamedKind{FigureKind::throughput, "throughput"},
                           NamedKind{FigureKind::step_time, "step-time"},
                           NamedKind{FigureKind::dt, "dt"},
                           NamedKind{FigureKind::loss_difference, "loss-difference"}};

// Bars that differ by more than this start at no zero: their axis is logarithmic.
constexpr double most_on_linear_axis = 20;

std::string x_label(XAxis x) {
  switch (x) {
    case XAxis::tokens:
      return "tokens";
    case XAxis::time:
      return "time in steps, s";
    case XAxis::step:
      break;
  }
  return "step";
}

// Where each step lies on the axis; empty where the run does not tell.
std::vector<double> x_values(const LoadedRun& loaded, XAxis x) {
  const Series& series = loaded.series;
  std::vector<double> values(series.size());
  double sum = 0;
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (x == XAxis::step) {
      values[i] = static_cast<double>(series.step[i]);
      continue;
    }
    const auto tokens = static_cast<double>(series.tokens[i] > 0 ? series.tokens[i] : loaded.run.tokens_per_step);
    const double add = x == XAxis::tokens ? tokens : series.dt_ms[i] / 1000;
    if (!(add > 0) || !std::isfinite(add)) return {};
    values[i] = sum += add;
  }
  return values;
}

// Columns of all runs as curves. `column` gives the values of a run's steps.
using Column = std::function<std::vector<double>(const LoadedRun&)>;

void add_curves(Figure& figure, const Study& study, XAxis x, const Column& column) {
  std::size_t left_out = 0;
  for (const LoadedRun& loaded : study.runs) {
    const StudyRung& rung = study.rung_of(loaded.run);
    std::vector<double> y = column(loaded);
    if (std::all_of(y.begin(), y.end(), [](double value) { return is_missing(value); })) continue;
    std::vector<double> at = x_values(loaded, x);
    if (at.empty()) {
      ++left_out;
      continue;
    }
    const bool first = rung.first == &loaded;
    figure.curves.push_back({.label = rung.label,
                             .x = std::move(at),
                             .y = std::move(y),
                             .style = static_cast<int>(&rung - study.rungs.data()),
                             .is_thin = !first,
                             .in_legend = first});
  }
  if (left_out > 0)
    figure.caption.insert(figure.caption.begin(), std::to_string(left_out) + (left_out == 1 ? " run is" : " runs are") +
                                                      " left out: not every step tells its " +
                                                      (x == XAxis::tokens ? "tokens" : "time") + ".");
}

std::size_t points_in(const Figure& figure) {
  std::size_t points = 0;
  for (const FigureCurve& curve : figure.curves)
    points += static_cast<std::size_t>(
        std::count_if(curve.y.begin(), curve.y.end(), [](double y) { return std::isfinite(y); }));
  return points;
}

// What cannot be drawn is told: how many values, of which curve, first where.
void tell_not_finite(Figure& figure) {
  for (const FigureCurve& curve : figure.curves) {
    std::size_t count = 0;
    double first = 0;
    for (std::size_t i = 0; i < curve.y.size(); ++i) {
      if (is_missing(curve.y[i]) || std::isfinite(curve.y[i])) continue;
      if (count++ == 0) first = curve.x[i];
    }
    if (count > 0)
      figure.caption.push_back(curve.label + ": " + grouped(static_cast<std::int64_t>(count)) +
                               (count == 1 ? " value is" : " values are") +
                               " NaN or infinite (crosses at the upper edge), the first at " + compact(first) + ".");
  }
}

void add_common_caption(Figure& figure, const Study& study) {
  tell_not_finite(figure);
  for (std::string& line : std::vector{hardware_line(study) + ".", sample_line(study), version_line(study)})
    figure.caption.push_back(std::move(line));
}

Figure curves_over_steps(const Study& study, XAxis x, std::string title, std::string y_label, const Column& column) {
  Figure figure{.title = std::move(title), .subtitle = study.title};
  figure.x.label = x_label(x);
  figure.y.label = std::move(y_label);
  add_curves(figure, study, x, column);
  figure.subtitle += "; " + grouped(static_cast<std::int64_t>(points_in(figure))) + " points";
  return figure;
}

// Step times or rates that differ this much are told apart at both ends only on a log axis.
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

}  // namespace

std::optional<FigureKind> figure_kind(std::string_view name) {
  for (const NamedKind& named : kinds) {
    if (named.name == name) return named.kind;
  }
  return std::nullopt;
}

std::vector<std::string> figure_names() {
  std::vector<std::string> names;
  for (const NamedKind& named : kinds) names.emplace_back(named.name);
  return names;
}

std::string_view to_string(FigureKind kind) {
  return std::find_if(kinds.begin(), kinds.end(), [&](const NamedKind& named) { return named.kind == kind; })->name;
}

CellTone trust_tone(const StudyRung& rung) {
  switch (rung.trust) {
    case Trust::impossible:
      return CellTone::bad;
    case Trust::doubtful:
      return CellTone::warning;
    case Trust::plausible:
      return CellTone::good;
    case Trust::not_checked:
      break;
  }
  return CellTone::quiet;
}

CellTone loss_tone(const StudyRung& rung) {
  if (rung.is_baseline) return CellTone::quiet;
  switch (rung.sum.loss.verdict) {
    case LossVerdict::same:
    case LossVerdict::better:
      return CellTone::good;
    case LossVerdict::worse:
      return CellTone::warning;
    case LossVerdict::diverged:
      return CellTone::bad;
    case LossVerdict::not_comparable:
      break;
  }
  return CellTone::quiet;
}

Figure make_figure(FigureKind kind, const Study& study, XAxis x) {
  switch (kind) {
    case FigureKind::loss:
      return loss_figure(study, x);
    case FigureKind::throughput:
      return throughput_figure(study, x);
    case FigureKind::step_time:
      return step_time_figure(study, x);
    case FigureKind::dt:
      return ecdf_figure(study);
    case FigureKind::loss_difference:
      return loss_difference_figure(study, x);
    case FigureKind::ladder:
      break;
  }
  return ladder_figure(study);
}

Figure ladder_figure(const Study& study) {
  Figure figure{.title = study.title, .subtitle = headline(study)};
  figure.heads = {study.rate_unit, "vs previous", "vs baseline", "95 %", "loss", "is it true?"};
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
                 {rung.is_baseline ? "" : factor_text(rung.sum.against_previous), number},
                 {factor_text(rung.sum.speedup), number},
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
  // A limit that no bar comes near would squeeze them all; the last column tells it in numbers.
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
  if (any_doubt) legend += " Hatched: not to be trusted.";
  if (any_limit)
    legend += " Red tick: the hardware's dense peak in that precision, at 6 N FLOPs per token.";
  else if (any_limit_beyond)
    legend += " The hardware's peak lies beyond the axis.";
  figure.caption.push_back(std::move(legend));
  figure.caption.push_back(timing_line(study));
  add_common_caption(figure, study);
  return figure;
}

Figure loss_figure(const Study& study, XAxis x) {
  Figure figure =
      curves_over_steps(study, x, "Loss", "loss, nats per token", [](const LoadedRun& run) { return run.series.loss; });
  std::vector<FigureCurve> validated;
  bool any_training = !figure.curves.empty();
  for (const LoadedRun& loaded : study.runs) {
    const Series& series = loaded.series;
    const StudyRung& rung = study.rung_of(loaded.run);
    if (rung.first != &loaded) continue;
    const std::vector<double> at = x_values(loaded, x);
    FigureCurve dots{
        .label = rung.label + ", validation", .style = static_cast<int>(&rung - study.rungs.data()), .is_dotted = true};
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (is_missing(series.val_loss[i])) continue;
      dots.x.push_back(at[i]);
      dots.y.push_back(series.val_loss[i]);
    }
    if (!dots.x.empty()) validated.push_back(std::move(dots));
  }
  const bool any_validation = !validated.empty();
  // One word in the caption is enough where each curve has its dots.
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
  Figure figure = curves_over_steps(study, x, "Throughput", study.rate_unit, [&](const LoadedRun& run) {
    std::vector<double> rate(run.series.size());
    for (std::size_t i = 0; i < rate.size(); ++i) {
      const double dt_ms = run.series.dt_ms[i];
      const auto tokens =
          static_cast<double>(run.series.tokens[i] > 0 ? run.series.tokens[i] : run.run.tokens_per_step);
      rate[i] = !(dt_ms > 0) || (!steps && tokens <= 0) ? missing : (steps ? 1 : tokens) * 1000 / dt_ms;
    }
    return rate;
  });
  figure.y.from_zero = true;
  if (needs_log_axis(figure.curves, false, most_on_linear_axis)) use_log_axis(figure.y);
  figure.caption.push_back(timing_line(study));
  add_common_caption(figure, study);
  return figure;
}

Figure step_time_figure(const Study& study, XAxis x) {
  Figure figure =
      curves_over_steps(study, x, "Step time", "step time, ms", [](const LoadedRun& run) { return run.series.dt_ms; });
  figure.y.from_zero = true;
  if (needs_log_axis(figure.curves, false, most_on_linear_axis)) use_log_axis(figure.y);
  figure.caption.push_back(timing_line(study));
  add_common_caption(figure, study);
  return figure;
}

Figure ecdf_figure(const Study& study) {
  Figure figure{.title = "Step time, cumulated", .subtitle = study.title};
  figure.x.label = "step time, ms";
  figure.y = {.label = "share of steady steps", .from_zero = true};
  for (const LoadedRun& loaded : study.runs) {
    std::vector<double> values = steady_dt_ms(loaded.series, loaded.summary);
    if (values.empty()) continue;
    std::sort(values.begin(), values.end());
    const StudyRung& rung = study.rung_of(loaded.run);
    const bool first = rung.first == &loaded;
    FigureCurve curve{.label = rung.label,
                      .style = static_cast<int>(&rung - study.rungs.data()),
                      .is_thin = !first,
                      .is_stairs = true,
                      .in_legend = first};
    // From zero at its fastest step; equal times are one stair.
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
  figure.caption.push_back("Empirical distribution: the share of a run's steady steps that took at most so long.");
  figure.caption.push_back(timing_line(study));
  add_common_caption(figure, study);
  return figure;
}

Figure loss_difference_figure(const Study& study, XAxis x) {
  Figure figure{.title = "Loss against the baseline", .subtitle = study.title};
  figure.x.label = x_label(x);
  figure.y.label = "loss minus baseline's, nats";
  std::vector<const Series*> base_repeats;
  for (const LoadedRun& loaded : study.runs) {
    if (loaded.run.rung == study.rungs.front().sum.rung) base_repeats.push_back(&loaded.series);
  }
  const double band = loss_band(base_repeats);
  bool others = false;
  std::string not_comparable;
  for (const StudyRung& rung : study.rungs) {
    if (rung.is_baseline || rung.first->series.empty()) continue;
    const auto named = std::find_if(study.rungs.begin(), study.rungs.end(),
                                    [&](const StudyRung& other) { return other.sum.rung == rung.sum.loss_against; });
    const StudyRung& against = named == study.rungs.end() ? study.rungs.front() : *named;
    if (rung.sum.loss.verdict == LossVerdict::not_comparable) {
      not_comparable += (not_comparable.empty() ? "" : ", ") + rung.label;
      continue;
    }
    others |= !against.is_baseline;
    const Series& base = against.first->series;
    const Series& own = rung.first->series;
    const std::vector<double> at = x_values(*rung.first, x);
    FigureCurve curve{.label = rung.label + (against.is_baseline ? "" : " (vs " + against.label + ")"),
                      .style = static_cast<int>(&rung - study.rungs.data())};
    for (std::size_t i = 0, j = 0; i < base.size() && j < at.size();) {
      if (base.step[i] != own.step[j]) {
        base.step[i] < own.step[j] ? ++i : ++j;
        continue;
      }
      if (!is_missing(base.loss[i]) && !is_missing(own.loss[j])) {
        curve.x.push_back(at[j]);
        curve.y.push_back(own.loss[j] - base.loss[i]);
      }
      ++i;
      ++j;
    }
    if (!curve.x.empty()) figure.curves.push_back(std::move(curve));
  }
  figure.marks.push_back({0, ""});
  figure.bands.push_back({-band, band, "counts as the same"});
  figure.caption.push_back(
      "At equal steps, not smoothed. Grey band: within " + loss_text(band) +
      " nats the verdict is \"same\" (the mean over the last quarter counts)" +
      (band > loss_tolerance_nats ? ", which is how far repeats of the baseline lie apart" : "") + "." +
      (others ? " Rungs above a change of the maths are held against the rung that made it." : ""));
  if (!not_comparable.empty())
    figure.caption.push_back("Left out, for their steps are not the same tokens as the baseline's: " + not_comparable +
                             ".");
  add_common_caption(figure, study);
  return figure;
}

}  // namespace stepladder
