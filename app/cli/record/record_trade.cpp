// `stepladder record trade`: loss per step from pools at two step counts, and times at equal loss.
#include <algorithm>
#include <memory>

#include "app/cli/record/subcommands.h"
#include "app/exit_status.h"
#include "app/text/format.h"
#include "storage/analysis/compare.h"
#include "storage/errors.h"
#include "storage/speedrun/loss_trade.h"

namespace stepladder {
namespace {

struct TradeOptions {
  std::string one, other;
  std::vector<std::string> candidate;
  std::string rule;
  double at = missing;
};

Json estimate_json(const Estimate& estimate) {
  return {{"value", number(estimate.value)}, {"ci95", interval_json(estimate.ci95)}};
}

Json pool_json(const TradePool& pool) {
  if (pool.metric.n == 0) return nullptr;
  return {{"n", pool.metric.n},
          {"steps", number(pool.steps)},
          {"mean", number(pool.metric.mean)},
          {"std", number(pool.metric.std)},
          {"time_mean_s", number(pool.time_s.mean)}};
}

// Of the two pools, and of the candidate against them; each kind once.
std::vector<RecordFlag> flags_of(const RecordPool& one, const RecordPool& other, const RecordPool* candidate) {
  std::vector<RecordFlag> flags = hygiene_flags(one, &other, nullptr);
  if (candidate)
    for (const RecordPool* pool : {&one, &other})
      for (RecordFlag& flag : hygiene_flags(*candidate, pool, nullptr))
        if (std::ranges::find(flags, flag.id, &RecordFlag::id) == flags.end()) flags.push_back(std::move(flag));
  return flags;
}

Json trade_json(const LossTrade& trade, const std::vector<RecordFlag>& flags, const std::string& metric) {
  return {{"metric", metric},
          {"fewer_steps", pool_json(trade.fewer)},
          {"more_steps", pool_json(trade.more)},
          {"metric_per_step", estimate_json(trade.metric_per_step)},
          {"s_per_step", estimate_json(trade.s_per_step)},
          {"s_per_metric", estimate_json(trade.s_per_metric)},
          {"at", number(trade.at)},
          {"extrapolated", trade.extrapolated},
          {"steps_at", estimate_json(trade.steps_at)},
          {"time_at_s", estimate_json(trade.time_at_s)},
          {"candidate", pool_json(trade.candidate)},
          {"speedup_at", estimate_json(trade.speedup_at)},
          {"flags", flags_json(flags)},
          {"note", text_or_null(trade.note)}};
}

std::string with_interval(Estimate estimate, std::string_view format, double scale = 1) {
  const auto figure = [&](double value) { return is_missing(value) ? "-" : fmt::format(fmt::runtime(format), value); };
  const std::string text = figure(estimate.value * scale);
  if (!estimate.ci95.known()) return text;
  double low = estimate.ci95.low * scale, high = estimate.ci95.high * scale;
  if (low > high) std::swap(low, high);
  return text + " (95 % interval " + figure(low) + " to " + figure(high) + ")";
}

std::string pool_text(const TradePool& pool, const std::string& metric) {
  return plural(pool.metric.n, "run") + " of " + grouped(pool.steps) + " steps: mean " + metric + " " +
         decimals(pool.metric.mean, 5) +
         (is_missing(pool.time_s.mean) ? "" : ", mean time " + decimals(pool.time_s.mean, 2) + " s") + "\n";
}

std::string trade_text(const LossTrade& trade, const std::vector<RecordFlag>& flags, const std::string& metric) {
  constexpr double thousandth = 0.001;
  std::string text = "  fewer      " + pool_text(trade.fewer, metric) + "  more       " + pool_text(trade.more, metric);
  text += "  per step   " + metric + " " + with_interval(trade.metric_per_step, "{:+.3g}") + "\n";
  if (!is_missing(trade.s_per_step.value))
    text += "  per step   " + with_interval(trade.s_per_step, "{:.2f}", 1e3) + " ms\n";
  if (!is_missing(trade.s_per_metric.value))
    text += "  0.001      of " + metric + " costs " + with_interval(trade.s_per_metric, "{:.2f}", -thousandth) +
            " s of training\n";
  if (!is_missing(trade.at)) {
    text += "  at " + decimals(trade.at, 5) + " " + with_interval(trade.steps_at, "{:.0f}") + " steps";
    if (!is_missing(trade.time_at_s.value)) text += ", " + with_interval(trade.time_at_s, "{:.2f}") + " s";
    text += trade.extrapolated ? std::string("; ") + (trade.is_far_beyond ? "far " : "") +
                                     "beyond the two pools, on the line through them\n"
                               : "\n";
  }
  if (trade.candidate.metric.n > 0) text += "  candidate  " + pool_text(trade.candidate, metric);
  if (!is_missing(trade.speedup_at.value))
    text += "  speed-up   at equal " + metric + ": " + with_interval(trade.speedup_at, "{:.4f}") + "\n";
  for (const RecordFlag& flag : flags) text += "  flag       " + flag.id + ": " + flag.why + "\n";
  if (!trade.note.empty()) text += "  " + trade.note + "\n";
  return text;
}

// Without a candidate there is nothing to judge.
int trade_status(const LossTrade& trade, const std::vector<RecordFlag>& flags) {
  if (trade.candidate.metric.n == 0) return exit_done;
  const Interval& factor = trade.speedup_at.ci95;
  if (factor.known() && factor.low > 1 && !trade.is_far_beyond && !flags.empty()) return exit_implausible;
  if (trade.is_far_beyond || !factor.known() || (factor.low <= 1 && factor.high >= 1)) return exit_cannot_tell;
  return factor.low > 1 ? exit_done : exit_slower;
}

int run_trade(const TradeOptions& options, const CommonOptions& common) {
  const std::optional<RecordRule> rule = asked_rule(options.rule);
  const LogQuestion question = question_of(rule);
  const RecordPool one = asked_pool({options.one}, question, common);
  const RecordPool other = asked_pool({options.other}, question, common);
  std::optional<RecordPool> candidate;
  if (!options.candidate.empty()) candidate = asked_pool(options.candidate, question, common);
  const double at = !is_missing(options.at) ? options.at : rule ? rule->target : missing;
  LossTrade trade;
  try {
    trade = loss_trade(one, other, candidate ? &*candidate : nullptr, at);
  } catch (const TradeError& error) {
    throw StorageError(error.what());
  }
  const std::vector<RecordFlag> flags = flags_of(one, other, candidate ? &*candidate : nullptr);
  print_as(
      common, [&] { return trade_json(trade, flags, question.metric); },
      [&] { return notes_text(trade_text(trade, flags, question.metric)); });
  return trade_status(trade, flags);
}

}  // namespace

void add_record_trade(CLI::App& record, CommonOptions& common, ChosenCommand& chosen) {
  const auto options = std::make_shared<TradeOptions>();
  CLI::App* command =
      add_with_json(record, common, "trade", "Loss per step from two step counts, and time at equal loss");
  command->add_option("one", options->one, "Pool at one step count, as for record")->required();
  command->add_option("other", options->other, "Pool of the same script at another step count")->required();
  command->add_option("--candidate", options->candidate, "Pool to compare at its own loss");
  CLI::Option* rule = command->add_option("--rule", options->rule, "Rule whose target the time is for");
  command->add_option("--at", options->at, "Value of the metric that the time is for")->excludes(rule);
  choose_if_parsed(*command, chosen, options, common, run_trade);
}

}  // namespace stepladder
