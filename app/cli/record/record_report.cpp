#include "app/cli/record/record_report.h"

#include <cmath>

#include "app/cli/report.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

std::string interval_text(const Interval& interval, int digits) {
  if (!interval.known()) return "";
  return ", 95 % interval " + decimals(interval.low, digits) + " to " + decimals(interval.high, digits);
}

std::string time_line(const SampleFigures& time) {
  return "mean " + decimals(time.mean, 2) + " s, median " + decimals(time.median, 2) + " s, range " +
         decimals(time.low, 2) + " to " + decimals(time.high, 2) + " s";
}

}  // namespace

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
  text +=
      fmt::format("  {}   mean {}, standard deviation {}{}\n", rule ? rule->metric : "val_loss",
                  decimals(claim.metric.mean, 5), decimals(claim.metric.std, 5), interval_text(claim.metric_ci95, 5));
  if (!is_missing(claim.p)) text += "  p          " + significant(claim.p, 3) + "\n";
  if (claim.time_s.n > 0) text += "  time       " + time_line(claim.time_s) + "\n";
  if (claim.baseline_time_s.n > 0)
    text += "  baseline   " + plural(claim.baseline_metric.n, "run") + ": " + time_line(claim.baseline_time_s) + "\n";
  if (!is_missing(claim.speedup))
    text += "  speed-up   " + decimals(claim.speedup, 4) + interval_text(claim.speedup_ci95, 4) + "\n";
  if (claim.needed_n > 0)
    text += "  needed     " + grouped(claim.needed_n) + " runs in all to pass with a probability of " +
            decimals(100 * power, 0) + " %" + (claim.needed_n > n ? "; " + grouped(claim.needed_n - n) + " more" : "") +
            "\n";
  for (const RecordFlag& flag : claim.flags) text += "  flag       " + flag.id + ": " + flag.why + "\n";
  for (const ExcludedLog& log : claim.excluded) text += "  excluded   " + log.file + " " + log.why + "\n";
  const char* const words[] = {"A record", "Misses the target", "Inconclusive", "Flagged"};
  text += std::string(words[static_cast<int>(claim.verdict)]) + ": " + claim.reason + "\n";
  return text;
}

}  // namespace stepladder
