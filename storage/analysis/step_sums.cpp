// Doubts of a gain in the medians of the steps: by the sum of all steps, the warm-up, the drift, the wall clock. For
// the judgement of rungs; a check that is new here has to leave honest runs alone, whose steps are uneven too.
#include "storage/analysis/step_sums.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "storage/analysis/change_point.h"
#include "storage/analysis/means/mean_test.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

constexpr double least_left = 1.0 / 3, most_lost = 0.05;

bool is_ours(const RunTimes& of) {
  return of.run.is_ours();
}

// Whether little of a gain is left; of none, whether it is a loss.
bool loses(double factor, double left) {
  return std::log(left) < least_left * std::log(std::max(factor, 1.0)) && std::log(factor / left) > most_lost;
}

Flag flag_of_median(FlagId id, double factor, double left, const std::string& how) {
  return {id, "By the median of its steps its throughput is " + figure_text(factor) + " x the baseline's, but " + how +
                  " it is " + figure_text(left) + " x."};
}

// The steady steps, in medians of their run.
struct SteadySteps {
  std::vector<double> all, evaluations, others;

  double evaluated() const {  // share of them
    return static_cast<double>(evaluations.size()) / static_cast<double>(all.size());
  }
};

SteadySteps in_medians(std::span<const RunTimes> runs) {
  SteadySteps steps;
  for (const auto& [run, summary, series] : runs)
    for (auto i = static_cast<std::size_t>(summary.warmup_steps); i < series.size(); ++i) {
      if (!(series.dt_ms[i] > 0) || !std::isfinite(series.dt_ms[i])) continue;
      steps.all.push_back(series.dt_ms[i] / summary.dt_ms_median);
      (is_beside_evaluation(series, i) ? steps.evaluations : steps.others).push_back(steps.all.back());
    }
  return steps;
}

SampleFigures without_slowest(std::vector<double> steps, std::size_t left_out) {
  const std::size_t kept = steps.size() - std::min(steps.size(), left_out);
  std::ranges::nth_element(steps, steps.begin() + static_cast<std::ptrdiff_t>(kept));
  steps.resize(kept);
  return figures_of(steps);
}

// With the warm-up, by its own median, so that compiling in a few steps counts little; a short one is none.
double mean_with_warmup(const RunTimes& run) {
  const Summary& of = run.summary;
  constexpr double shortest = 0.25;
  const auto share = static_cast<double>(of.warmup_steps) / static_cast<double>(of.steps);
  if (share <= shortest || std::ssize(run.series.dt_ms) < of.steps) return of.dt_ms_median;
  std::vector<double> warmup(run.series.dt_ms.begin(), run.series.dt_ms.begin() + of.warmup_steps);
  std::erase_if(warmup, [](double dt_ms) { return !(dt_ms > 0); });
  return warmup.empty() ? of.dt_ms_median : share * median_of(std::move(warmup)) + (1 - share) * of.dt_ms_median;
}

// Figures that a step of both has as much of, if both have as many tokens a step.
struct OtherFigure {
  const char* name;
  std::string_view printed;
  bool is_of_model = false;  // and of its precision
};
constexpr std::array other_figures{OtherFigure{per_step::mfu, "the MFU", true},
                                   OtherFigure{per_step::tflops, "the TFLOP/s", true},
                                   OtherFigure{per_step::samples_rate, "the samples/s"},
                                   OtherFigure{per_step::steps_rate, "the steps/s"},
                                   OtherFigure{per_step::samples, "the consumed samples"},
                                   OtherFigure{per_step::tokens, "the consumed tokens"},
                                   OtherFigure{per_step::configured, "batch size and accumulation"}};

// Whether the figures that both logs print beside the times of their steps deny a gain in these.
std::optional<Flag> doubt_by_log(double factor, const RunTimes& base, const RunTimes& run) {
  if (base.run.tokens_per_step != run.run.tokens_per_step) return std::nullopt;
  const bool is_one_model = base.run.params == run.run.params && base.run.precision == run.run.precision;
  const auto both = [&](const char* name) {
    const auto a = base.run.printed.per_step.find(name), b = run.run.printed.per_step.find(name);
    const bool is_known = a != base.run.printed.per_step.end() && b != run.run.printed.per_step.end();
    return is_known ? std::pair(a->second, b->second) : std::pair(missing, missing);
  };
  for (const auto& [name, printed, is_of_model] : other_figures) {
    const auto [theirs, ours] = both(name);
    if (theirs > 0 && (is_one_model || !is_of_model) && loses(factor, factor * ours / theirs))
      return flag_of_median(FlagId::dt_throughput_mismatch, factor, factor * ours / theirs,
                            "by " + std::string(printed) + " that both logs print");
  }
  const auto [theirs, ours] = both(per_step::untimed_ms);
  const double left = factor / (1 + std::max(0.0, ours - theirs) / run.summary.dt_ms_median);
  if (!is_missing(ours) && loses(factor, left))
    return flag_of_median(FlagId::wall_clock_mismatch, factor, left,
                          "by the total time that both logs print, evaluations included,");
  return std::nullopt;
}

// The distance of the steps that a log times.
double steps_per_time(const RunTimes& run) {
  const Summary& of = run.summary;
  return static_cast<double>(of.last_step - of.first_step) / static_cast<double>(of.steps - of.untimed_steps - 1);
}

}  // namespace

std::optional<Flag> doubt_sums(double factor, std::span<const RunTimes> base, std::span<const RunTimes> runs) {
  if (!(factor > 1 - most_lost) || (std::ranges::all_of(base, is_ours) && std::ranges::all_of(runs, is_ours)))
    return std::nullopt;
  constexpr double most_evaluated = 0.5, most_more_often = 1.5, slow = 1.5;
  const SteadySteps base_steps = in_medians(base), steps = in_medians(runs);
  const double often = steps.evaluated(), base_often = base_steps.evaluated();
  // If the baseline's times hold its evaluations. Who evaluates its slow steps alone would hide them.
  const bool leaves_out = std::max(often, base_often) < most_evaluated && often <= most_more_often * base_often &&
                          figures_of(base_steps.evaluations).mean > slow;
  const auto figures = [&](const SteadySteps& of) {
    const std::vector<double>& counted = leaves_out ? of.others : of.all;
    return without_slowest(counted, counted.size() / 100);
  };
  const SampleFigures theirs = figures(base_steps), ours = figures(steps);
  // The slowest hundredth may not cost the gain either: one step of each run may.
  const double by_all =
      factor * without_slowest(base_steps.all, base.size()).mean / without_slowest(steps.all, runs.size()).mean;
  if (loses(factor, by_all))
    return flag_of_median(FlagId::uneven_steps, factor, by_all, "with its slower steps, by the sum of all,");
  const auto error = [](const SampleFigures& of) { return of.std / std::sqrt(static_cast<double>(of.n)); };
  if (!loses(factor, factor * (theirs.mean + error(theirs)) / (ours.mean - error(ours)))) return std::nullopt;
  return flag_of_median(
      FlagId::uneven_steps, factor, factor * theirs.mean / ours.mean,
      std::string("with its slower steps, by the sum of all") + (leaves_out ? " but evaluations" : "") + ",");
}

std::optional<Flag> doubt_median(double factor, const RunTimes& base, const RunTimes& run) {
  if (!(factor > 1) || (is_ours(base) && is_ours(run))) return std::nullopt;
  const auto lost = [&](double base_ms, double run_ms) {
    const double left = factor * (base_ms / base.summary.dt_ms_median) / (run_ms / run.summary.dt_ms_median);
    return loses(factor, left) ? left : missing;
  };
  if (const double left = lost(mean_with_warmup(base), mean_with_warmup(run)); !is_missing(left))
    return flag_of_median(FlagId::uneven_steps, factor, left,
                          "with the warm-up (" + grouped(run.summary.warmup_steps) + " and " +
                              grouped(base.summary.warmup_steps) + " steps)");
  const double apart = steps_per_time(run), base_apart = steps_per_time(base);
  if (std::isfinite(apart) && apart > 1.5 * base_apart)
    return Flag{FlagId::missing_steps, "Its log times one step in " + figure_text(apart) +
                                           ", and the baseline's one in " + figure_text(base_apart) +
                                           ": if the others are the slow ones, its step time is too short."};
  const double drift = std::log1p(run.summary.drift) - std::log1p(base.summary.drift);
  if (const double left = factor / std::exp(std::abs(drift) / 2); loses(factor, left))
    return flag_of_median(FlagId::uneven_steps, factor, left,
                          std::string("at the ") + (drift > 0 ? "end" : "beginning") +
                              ", since the times of the steps drift by " + percent_text(run.summary.drift) +
                              ", and the baseline's by " + percent_text(base.summary.drift) + ",");
  if (is_ours(base) || is_ours(run)) return std::nullopt;
  if (auto flag = doubt_by_log(factor, base, run)) return flag;
  if (const double left = lost(base.summary.wall_ms_median, run.summary.wall_ms_median); !is_missing(left))
    return flag_of_median(FlagId::wall_clock_mismatch, factor, left, "by the wall clock");
  return std::nullopt;
}

}  // namespace stepladder
