// Judges a pool under a rule: figures, p value, time, verdict. A claim is a record only if metric and time both say so,
// and misses if either does; anything unknown is inconclusive. For metrics where higher wins, values are mirrored
// before the tests.
#include "storage/speedrun/record_claim.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "storage/wording.h"

namespace stepladder {
namespace {

SampleFigures mirrored(SampleFigures figures) {
  figures.mean = -figures.mean;
  std::swap(figures.low, figures.high);
  return figures;
}

// The amount by which the mean beats what it is tested against; negative if it doesn't.
double distance(const RecordClaim& claim, const RecordRule& rule) {
  const double against = rule.test == RecordTest::welch
                             ? claim.baseline_metric.mean - (rule.lower_wins ? 1 : -1) * rule.margin
                             : rule.target;
  return (rule.lower_wins ? 1 : -1) * (against - claim.metric.mean);
}

std::int64_t needed_runs(const RecordClaim& claim, const RecordRule& rule, double power) {
  const double ahead = distance(claim, rule);
  if (!(ahead > 0)) return 0;
  switch (rule.test) {
    case RecordTest::none:
      return 1;
    case RecordTest::t:
      return claim.metric.std > 0 ? needed_for_t(ahead / claim.metric.std, rule.alpha, power) : 0;
    case RecordTest::z:
      if (is_missing(rule.margin)) return needed_for_z(ahead / rule.sigma, rule.alpha, power);
      return ahead * 1e3 < rule.margin
                 ? 0
                 : static_cast<std::int64_t>(std::ceil(rule.margin / ahead * (rule.margin / ahead) - 1e-9));
    case RecordTest::welch:
      return needed_for_welch(ahead, claim.metric.std, claim.baseline_metric.std, rule.alpha, power);
  }
  return 0;
}

struct Finding {
  RecordVerdict verdict;
  std::string reason;
};

// A systems-only change needs no test against the target, but it leaves the loss where it was.
Finding judge_waived(const RecordClaim& claim, const RecordRule& rule) {
  constexpr double level = 0.01;  // of rules that have none
  const std::string waived = "the rule waives the test of " + rule.metric + " for a systems-only change";
  if (claim.baseline_metric.n == 0) return {RecordVerdict::record, waived};  // the clock needs a baseline
  if (!std::isfinite(claim.baseline_metric.mean))
    return {RecordVerdict::cannot_tell, "a baseline run's " + rule.metric + " isn't finite"};
  SampleFigures now = claim.metric, before = claim.baseline_metric;
  if (rule.lower_wins) std::swap(now, before);  // the probability of a loss so far above the baseline's
  const double p = p_below_welch(now, before, 0);
  const std::string means = "the mean " + rule.metric + " is " + significant(claim.metric.mean, 6) +
                            ", and the baseline's " + significant(claim.baseline_metric.mean, 6);
  if (p < (is_missing(rule.alpha) ? level : rule.alpha))
    return {RecordVerdict::misses, means + ", so the change isn't systems-only (p is " + significant(p, 3) + ")"};
  if (is_missing(p) && now.mean < before.mean)
    return {RecordVerdict::cannot_tell, means + ", and runs without a spread don't tell whether that is noise"};
  return {RecordVerdict::record, waived};
}

// The finding by the metric.
Finding judge_metric(const RecordClaim& claim, const RecordRule& rule, const ClaimOptions& options) {
  const std::string mean = "the mean " + rule.metric + " is " + significant(claim.metric.mean, 6);
  if (claim.metric.n == 0) return {RecordVerdict::cannot_tell, "no log holds a finished run"};
  if (!std::isfinite(claim.metric.mean))
    return {RecordVerdict::misses, "a run's last " + rule.metric + " isn't a finite number"};
  if (options.systems_only && rule.systems_only_waiver) return judge_waived(claim, rule);
  if (rule.test == RecordTest::welch && claim.baseline_metric.n == 0)
    return {RecordVerdict::cannot_tell, "the rule compares with the record, and no baseline was given"};
  const double ahead = distance(claim, rule);
  const std::string target =
      rule.test == RecordTest::welch
          ? "the baseline's " + significant(claim.baseline_metric.mean, 6) + " less " + significant(rule.margin, 6)
          : significant(rule.target, 6);
  if (std::isnan(ahead)) return {RecordVerdict::cannot_tell, "a baseline run's " + rule.metric + " isn't finite"};
  if (ahead < 0) return {RecordVerdict::misses, mean + ", which misses " + target};
  if (rule.test == RecordTest::none) return {RecordVerdict::record, mean + ", which reaches " + target};
  if (rule.test == RecordTest::z && !is_missing(rule.margin)) {
    const double score = ahead * std::sqrt(static_cast<double>(claim.metric.n));
    const std::string text = "distance to the target times sqrt(n) is " + significant(score, 6);
    if (score >= rule.margin - 1e-12)
      return {RecordVerdict::record, text + ", at least " + significant(rule.margin, 6)};
    return {RecordVerdict::cannot_tell, text + "; the rule asks for " + significant(rule.margin, 6)};
  }
  if (is_missing(claim.p))
    return {RecordVerdict::cannot_tell, mean + ", and runs without a spread cannot be tested; run at least two"};
  const std::string p = mean + " and p is " + significant(claim.p, 3);
  if (claim.p < rule.alpha) return {RecordVerdict::record, p + ", below " + significant(rule.alpha, 6)};
  return {RecordVerdict::cannot_tell, p + ", not below " + significant(rule.alpha, 6)};
}

// The finding by the clock.
Finding judge_time(const RecordClaim& claim, const RecordRule& rule) {
  if (!is_missing(rule.time_limit_s) && claim.time_s.n > 0 && claim.time_s.high > rule.time_limit_s)
    return {RecordVerdict::misses, "a run trained for " + significant(claim.time_s.high, 6) + " s; the rule allows " +
                                       significant(rule.time_limit_s, 6)};
  if (!rule.faster_than_baseline) return {RecordVerdict::record, ""};
  if (claim.baseline_time_s.n == 0)
    return {RecordVerdict::cannot_tell,
            "the rule asks for runs faster than the record's, and no timed baseline was given"};
  if (is_missing(claim.speedup)) return {RecordVerdict::cannot_tell, "the logs print no clock"};
  const std::string factor = "the speed-up over the baseline is " + decimals(claim.speedup, 4);
  if (!claim.speedup_ci95.known())
    return claim.speedup < 1
               ? Finding{RecordVerdict::misses, factor}
               : Finding{RecordVerdict::cannot_tell, factor + ", and its interval needs two runs of each"};
  const std::string interval =
      factor + " (" + decimals(claim.speedup_ci95.low, 4) + " to " + decimals(claim.speedup_ci95.high, 4) + ")";
  if (claim.speedup_ci95.low > 1) return {RecordVerdict::record, interval};
  if (claim.speedup_ci95.high < 1) return {RecordVerdict::misses, interval};
  return {RecordVerdict::cannot_tell, interval + ", which may be none"};
}

void flag_added_runs(const RecordPool& pool, const RecordRule& rule, const ClaimOptions& options, RecordClaim& claim) {
  const auto n = static_cast<std::int64_t>(pool.logs.size());
  if (options.plan > 0) {
    // Cut and failed ones have flags of their own.
    const auto beside = std::ranges::count_if(pool.excluded, [](const ExcludedLog& log) {
      return log.is_empty || (log.has_steps && !log.unfinished && !log.failed);
    });
    if (n + beside != options.plan)
      claim.flags.push_back({"plan-not-kept", std::to_string(options.plan) + " runs were planned and " +
                                                  std::to_string(n + beside) + " are here" +
                                                  (beside > 0 ? ", of which " + std::to_string(n) + " count" : "")});
    return;
  }
  if (rule.test != RecordTest::t || !(claim.p < rule.alpha) || n < 3) return;
  const std::vector<ArrivedRun> history = runs_as_they_arrived(pool, nullptr, rule);
  if (history.empty() || !history.front().started_at_s) return;
  for (std::size_t k = history.size() - 1; k >= 2; --k) {
    const double before = history[k - 1].p;
    const bool last = k == history.size() - 1;
    const bool pause = *history[k].started_at_s - *history[k - 1].started_at_s > session_gap_s;
    if ((!last && !pause) || is_missing(before) || before < rule.alpha) continue;
    const std::string later =
        decimals(static_cast<double>(*history[k].started_at_s - *history[k - 1].started_at_s) / 3'600, 0);
    claim.flags.push_back(
        {"runs-added",
         fmt::format("after the first {} of {} runs p was {}; it is below {} only with {}. Stopping once p is low "
                     "passes more null results than the level says, unless the number of runs was fixed beforehand",
                     k, n, significant(before, 3), significant(rule.alpha, 6),
                     last ? "the last run" : "those that were added " + later + " hours later")});
    return;
  }
}

}  // namespace

const char* to_string(RecordVerdict verdict) {
  return by_enum<RecordVerdict>("record", "misses", "cannot-tell", "flagged")[verdict];
}

std::vector<double> final_times_s(const RecordPool& pool) {
  std::vector<double> times;
  for (const SpeedrunLog& log : pool.logs)
    if (!is_missing(log.final.time_ms)) times.push_back(log.final.time_ms / 1e3);
  return times;
}

std::vector<double> final_values(const RecordPool& pool) {
  std::vector<double> values;
  for (const SpeedrunLog& log : pool.logs) values.push_back(log.final.value);
  return values;
}

double p_of(const SampleFigures& metric, const SampleFigures& baseline, const RecordRule& rule) {
  if (!rule.lower_wins) {
    RecordRule lower = rule;
    lower.lower_wins = true;
    lower.target = -rule.target;
    return p_of(mirrored(metric), mirrored(baseline), lower);
  }
  switch (rule.test) {
    case RecordTest::none:
      return missing;
    case RecordTest::t:
      return p_below_t(metric, rule.target);
    case RecordTest::z:
      return is_missing(rule.sigma) ? missing : p_below_z(metric, rule.target, rule.sigma);
    case RecordTest::welch:
      return p_below_welch(metric, baseline, is_missing(rule.margin) ? 0 : rule.margin);
  }
  return missing;
}

std::vector<ArrivedRun> runs_as_they_arrived(const RecordPool& pool, const RecordPool* baseline,
                                             const RecordRule& rule) {
  std::vector<ArrivedRun> runs;
  const bool dated =
      std::ranges::all_of(pool.logs, [](const SpeedrunLog& log) { return log.started_at_s.has_value(); });
  for (std::size_t i = 0; i < pool.logs.size(); ++i) {
    const SpeedrunLog& log = pool.logs[i];
    runs.push_back({i, dated ? log.started_at_s : std::nullopt, log.final.value, log.final.time_ms / 1e3, missing});
  }
  if (dated)
    std::ranges::stable_sort(
        runs, [](const ArrivedRun& a, const ArrivedRun& b) { return *a.started_at_s < *b.started_at_s; });
  const SampleFigures theirs = baseline ? figures_of(final_values(*baseline)) : SampleFigures{};
  std::vector<double> values;
  for (ArrivedRun& run : runs) {
    values.push_back(run.value);
    run.p = p_of(figures_of(values), theirs, rule);
  }
  return runs;
}

namespace {

// What flagged a claim comes before what else is known of it.
void lead_with_flags(RecordClaim& claim) {
  if (claim.verdict != RecordVerdict::flagged) return;
  std::string why = claim.flags.front().why;
  why.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(why.front())));
  const std::size_t more = claim.flags.size() - 1;
  claim.reason =
      why + (more > 0 ? ", and " + plural(std::ssize(claim.flags) - 1, "more flag") : "") + "; " + claim.reason;
}

}  // namespace

RecordClaim judge_record(const RecordPool& pool, const RecordPool* baseline, const std::optional<RecordRule>& given,
                         const ClaimOptions& options) {
  RecordClaim claim;
  std::optional<RecordRule> rule = given;
  if (rule && rule->test == RecordTest::welch && is_missing(rule->margin)) rule->margin = 0;
  claim.metric = figures_of(final_values(pool));
  claim.metric_ci95 = mean_interval(claim.metric);
  claim.time_s = figures_of(final_times_s(pool));
  claim.excluded = pool.excluded;
  if (baseline) {
    claim.baseline_metric = figures_of(final_values(*baseline));
    claim.baseline_time_s = figures_of(final_times_s(*baseline));
    claim.excluded.insert(claim.excluded.end(), baseline->excluded.begin(), baseline->excluded.end());
  }
  if (claim.time_s.mean > 0 && claim.baseline_time_s.mean > 0) {
    claim.speedup = claim.baseline_time_s.mean / claim.time_s.mean;
    claim.speedup_ci95 = mean_ratio_interval(claim.baseline_time_s, claim.time_s);
  }
  claim.flags = hygiene_flags(pool, baseline, rule ? &*rule : nullptr);
  if (!rule) {
    claim.reason = claim.finding = claim.metric.n == 0 ? "no log holds a finished run" : "no rule was given";
    if (!claim.flags.empty()) claim.verdict = RecordVerdict::flagged;
    lead_with_flags(claim);
    return claim;
  }
  claim.p = p_of(claim.metric, claim.baseline_metric, *rule);
  if (claim.metric.n > 0) claim.needed_n = needed_runs(claim, *rule, options.power);
  flag_added_runs(pool, *rule, options, claim);

  const Finding metric = judge_metric(claim, *rule, options);
  const Finding time = judge_time(claim, *rule);
  const auto either = [&](RecordVerdict verdict) { return metric.verdict == verdict || time.verdict == verdict; };
  claim.verdict = either(RecordVerdict::misses)        ? RecordVerdict::misses
                  : !claim.flags.empty()               ? RecordVerdict::flagged
                  : either(RecordVerdict::cannot_tell) ? RecordVerdict::cannot_tell
                                                       : RecordVerdict::record;
  claim.reason = claim.finding = metric.reason + (time.reason.empty() ? "" : "; " + time.reason);
  lead_with_flags(claim);
  if (claim.verdict == RecordVerdict::record && options.plan == 0 && rule->test != RecordTest::none)
    claim.reason += "; these may be the best of more runs, since no planned number is known";
  if (rule->overrides_built_in)
    claim.reason += "; the rule is the user's own, which overrides the built-in one of this name";
  return claim;
}

}  // namespace stepladder
