// A claim to a record as JSON and as text.
#include "app/cli/record/subcommands.h"
#include "app/cli/report.h"
#include "app/cli/table.h"
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

Json flags_json(const std::vector<RecordFlag>& flags) {
  Json list = Json::array();
  for (const RecordFlag& flag : flags) list.push_back({{"id", flag.id}, {"why", flag.why}});
  return list;
}

Json record_json(const RecordClaim& claim, const std::optional<RecordRule>& rule) {
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
          {"flags", flags_json(claim.flags)},
          {"excluded", excluded}};
}

std::string record_text(const RecordClaim& claim, const std::optional<RecordRule>& rule, double power) {
  const auto n = static_cast<std::int64_t>(claim.metric.n);
  std::vector<std::vector<std::string>> rows{{"  runs", grouped(n)}};
  rows.push_back({"  " + (rule ? rule->metric : "val_loss"),
                  fmt::format("mean {}, standard deviation {}{}", decimals(claim.metric.mean, 5),
                              decimals(claim.metric.std, 5), interval_text(claim.metric_ci95, 5))});
  if (!is_missing(claim.p)) rows.push_back({"  p", significant(claim.p, 3)});
  if (claim.time_s.n > 0) rows.push_back({"  time", time_line(claim.time_s)});
  if (claim.baseline_time_s.n > 0)
    rows.push_back({"  baseline", plural(claim.baseline_metric.n, "run") + ": " + time_line(claim.baseline_time_s)});
  if (!is_missing(claim.speedup))
    rows.push_back({"  speed-up", decimals(claim.speedup, 4) + interval_text(claim.speedup_ci95, 4)});
  if (claim.needed_n > 0)
    rows.push_back({"  needed", grouped(claim.needed_n) + " runs in all to pass with a probability of " +
                                    decimals(100 * power, 0) + " %" +
                                    (claim.needed_n > n ? "; " + grouped(claim.needed_n - n) + " more" : "")});
  for (const RecordFlag& flag : claim.flags) rows.push_back({"  flag", flag.id + ": " + flag.why});
  for (const ExcludedLog& log : claim.excluded) rows.push_back({"  excluded", log.file + " " + log.why});
  return (rule ? notes_text(rule->title + " (" + rule->name + ", " + rule->date + ")") : "") +
         table(rows, {false, false}) + notes_text(record_words[claim.verdict] + (": " + claim.reason));
}

}  // namespace stepladder
