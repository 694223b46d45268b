#include "app/verdict_text.h"

#include <cmath>
#include <cstdio>

#include "app/format.h"

namespace stepladder {

std::string ci95_text(const Interval& interval) {
  if (!interval.known()) return "-";
  char text[64];
  std::snprintf(text, sizeof text, "%.*f - %.*f", interval.low < 10 ? 3 : 1, interval.low, interval.low < 10 ? 3 : 1,
                interval.high);
  return text;
}

std::string_view verdict_word(Verdict verdict) {
  return verdict == Verdict::cannot_tell ? "inconclusive" : to_string(verdict);
}

std::string_view verdict_word(MetricVerdict verdict) {
  switch (verdict) {
    case MetricVerdict::better:
      return "better";
    case MetricVerdict::worse:
      return "worse";
    case MetricVerdict::same:
      return "same";
    case MetricVerdict::cannot_tell:
      break;
  }
  return "";
}

std::string verdict_text(const Gain& gain, std::string_view base) {
  if (gain.trust == Trust::impossible) return "impossible";
  if (is_missing(gain.factor)) return "-";
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

std::string needed_text(const RungJudgement& rung) {
  const std::int64_t runs = rung.needed_runs();
  if (runs == 0) return "";
  return "About " + grouped(runs) + " more run" + (runs == 1 ? "" : "s") + " of each would settle it.";
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
