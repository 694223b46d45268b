#include "app/text/verdict_text.h"

#include <cmath>

#include "app/text/format.h"

namespace stepladder {

namespace {

// "About 7 more runs of each, 12 min, "
std::string more_runs_text(std::int64_t runs, double seconds) {
  return "About " + plural(runs, "more run") + " of each" +
         (seconds > 0 ? ", " + rough_duration_text(seconds) + ", " : " ");
}

}  // namespace

std::string ci95_text(const Interval& interval) {
  if (!interval.known()) return "-";
  const int digits = interval.low < 10 ? 3 : 1;
  return fmt::format("{:.{}f} - {:.{}f}", interval.low, digits, interval.high, digits);
}

std::string_view verdict_word(Verdict verdict) {
  return verdict == Verdict::cannot_tell ? "inconclusive" : to_string(verdict);
}

std::string_view verdict_word(MetricVerdict verdict) {
  return verdict == MetricVerdict::cannot_tell ? "inconclusive" : to_string(verdict);
}

std::string verdict_text(const Gain& gain, std::string_view base) {
  if (gain.trust == Trust::impossible) return "impossible";
  if (is_missing(gain.factor)) return gain.worst() == Trust::doubtful ? "doubtful" : "-";
  if (gain.base_trust == Trust::impossible) return std::string(base) + " impossible";
  const bool is_one_run = gain.runs == 1 && (gain.verdict == Verdict::faster || gain.verdict == Verdict::slower);
  return std::string(verdict_word(gain.verdict)) + (is_one_run ? ", one run" : "") +
         (gain.worst() == Trust::doubtful ? ", doubtful" : "");
}

std::string loss_text(const LossParity& loss, bool is_baseline) {
  if (is_baseline) return "baseline";
  if (loss.verdict == LossVerdict::better || loss.verdict == LossVerdict::worse) {
    return std::string(to_string(loss.verdict)) + " by " + loss_text(std::fabs(loss.tail_gap));
  }
  return loss.verdict == LossVerdict::not_comparable ? "not comparable" : std::string(to_string(loss.verdict));
}

std::string difference_text(const std::string& name, const MetricComparison& metric) {
  std::string text = fmt::format("{} {}, baseline {}: {}", name, metric_text(metric.value), metric_text(metric.base),
                                 verdict_word(metric.verdict));
  if (is_missing(metric.difference) || metric.verdict == MetricVerdict::same) return text;
  text += ", a difference of " + metric_text(metric.difference);
  if (!metric.ci95.known()) return text + ", whose interval needs two runs of each that differ";
  return text + " (95 % interval " + metric_text(metric.ci95.low) + " to " + metric_text(metric.ci95.high) + ")";
}

std::string needed_text(const RungJudgement& rung) {
  const std::int64_t runs = rung.needed_runs();
  if (runs == 0) return "";
  return rung.over_baseline.needed_runs > 0 ? needed_text(runs, rung.needed_seconds(), rung.noise_floor)
                                            : more_runs_text(runs, rung.needed_seconds()) + "would settle the loss.";
}

std::string needed_text(std::int64_t runs, double seconds, double noise_floor) {
  const std::string who = runs == 0 ? "At this noise hardly any number of runs " : more_runs_text(runs, seconds);
  return fmt::format("{}would tell {:.3g} %.", who, 100 * noise_floor);
}

std::string fit_text(const FittedProfile& fitted) {
  if (fitted.profile.steps == 0) return "";
  const std::string profiled = "the profiled steps took " + milliseconds_text(fitted.profiled_ms);
  if (is_missing(fitted.measured_ms)) return "Not comparable: " + profiled + ", and no measured step has a time.";
  const std::string both = profiled + ", the median measured step " + milliseconds_text(fitted.measured_ms);
  if (!fitted.is_comparable) return "Not comparable with the step's time: " + both + ". Only the shares count.";
  if (std::fabs(fitted.profiled_ms / fitted.measured_ms - 1) < 0.1) return "";
  return "Scaled to the measured step: " + both + ".";
}

}  // namespace stepladder
