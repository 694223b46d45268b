#include "app/cli/record/record_report.h"

#include <cmath>
#include <cstdio>

#include "app/cli/report.h"
#include "app/format.h"

namespace stepladder {
namespace {

std::string interval_text(const Interval& interval, const char* format) {
  if (!interval.known()) return "";
  return ", 95 % interval " + figure_text(interval.low, format) + " to " + figure_text(interval.high, format);
}

std::string time_line(const SampleFigures& time) {
  return "mean " + figure_text(time.mean, "%.2f") + " s, median " + figure_text(time.median, "%.2f") + " s, range " +
         figure_text(time.low, "%.2f") + " to " + figure_text(time.high, "%.2f") + " s";
}

}  // namespace

std::string figure_text(double value, const char* format) {
  if (is_missing(value)) return "-";
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

Json record_json(const RecordClaim& claim, const std::optional<RecordRule>& rule) {
  Json flags = Json::array();
  for (const RecordFlag& flag : claim.flags) flags.push_back({{"id", flag.id}, {"why", flag.why}});
  Json excluded = Json::array();
  for (const ExcludedLog& log : claim.excluded) excluded.push_back({{"file", log.file}, {"why", log.why}});
  return {{"rule", rule ? Json(rule->name) : Json()},
          {"metric", rule ? rule->metric : "val_loss"},
          {"target", rule ? number(rule->target) : Json()},
          {"alpha", rule ? number(rule->alpha) : Json()},
          {"n", claim.metric.n},
          {"mean", number(claim.metric.mean)},
          {"std", number(claim.metric.std)},
          {"mean_ci95", interval_json(claim.metric_ci95)},
          {"p", number(claim.p)},
          {"time_mean_s", number(claim.time_s.mean)},
          {"time_median_s", number(claim.time_s.median)},
          {"time_min_s", number(claim.time_s.low)},
          {"time_max_s", number(claim.time_s.high)},
          {"baseline_n", claim.baseline_metric.n},
          {"baseline_mean", number(claim.baseline_metric.mean)},
          {"baseline_time_mean_s", number(claim.baseline_time_s.mean)},
          {"speedup", number(claim.speedup)},
          {"ci95", interval_json(claim.speedup_ci95)},
          {"needed_n", claim.needed_n > 0 ? Json(claim.needed_n) : Json()},
          {"verdict", to_string(claim.verdict)},
          {"reason", claim.reason},
          {"flags", flags},
          {"excluded", excluded}};
}

std::string record_text(const RecordClaim& claim, const std::optional<RecordRule>& rule, double power) {
  const auto n = static_cast<std::int64_t>(claim.metric.n);
  std::string text = rule ? rule->title + " (" + rule->name + ", " + rule->date + ")\n" : "";
  text += "  runs       " + grouped(n) + "\n";
  text += "  " + std::string(rule ? rule->metric : "val_loss") + "   mean " + figure_text(claim.metric.mean, "%.5f") +
          ", standard deviation " + figure_text(claim.metric.std, "%.5f") + interval_text(claim.metric_ci95, "%.5f") +
          "\n";
  if (!is_missing(claim.p)) text += "  p          " + figure_text(claim.p, "%.3g") + "\n";
  if (claim.time_s.n > 0) text += "  time       " + time_line(claim.time_s) + "\n";
  if (claim.baseline_time_s.n > 0)
    text += "  baseline   " + plural(claim.baseline_metric.n, "run") + ": " + time_line(claim.baseline_time_s) + "\n";
  if (!is_missing(claim.speedup))
    text += "  speed-up   " + figure_text(claim.speedup, "%.4f") + interval_text(claim.speedup_ci95, "%.4f") + "\n";
  if (claim.needed_n > 0)
    text += "  needed     " + grouped(claim.needed_n) + " runs in all to pass with a probability of " +
            figure_text(100 * power, "%.0f") + " %" +
            (claim.needed_n > n ? "; " + grouped(claim.needed_n - n) + " more" : "") + "\n";
  for (const RecordFlag& flag : claim.flags) text += "  flag       " + flag.id + ": " + flag.why + "\n";
  for (const ExcludedLog& log : claim.excluded) text += "  excluded   " + log.file + " " + log.why + "\n";
  const char* const words[] = {"A record", "Misses the target", "Inconclusive", "Flagged"};
  text += std::string(words[static_cast<int>(claim.verdict)]) + ": " + claim.reason + "\n";
  return text;
}

}  // namespace stepladder
