// Fits a line through two pools of different length and reads steps, time and speed-up at equal loss from it. Errors
// are propagated by the delta method; each Term carries a sample and the derivative. A loss per step whose interval
// holds zero gets a note.
#include "storage/speedrun/loss_trade.h"

#include <cmath>
#include <initializer_list>
#include <utility>

#include "storage/analysis/means/student_t.h"
#include "storage/speedrun/record_claim.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

// A mean that a figure depends on, and the figure's derivative by it.
struct Term {
  const SampleFigures& sample;
  double slope;
};

// The estimate by the delta method, with Welch's approximate degrees of freedom.
Estimate estimate(double value, std::initializer_list<Term> terms) {
  double variance = 0;
  double squares = 0;
  for (const Term& term : terms) {
    if (is_missing(term.sample.std)) return {value, {}};
    const auto n = static_cast<double>(term.sample.n);
    const double part = term.slope * term.slope * term.sample.std * term.sample.std / n;
    variance += part;
    squares += part * part / (n - 1);
  }
  if (!(variance > 0) || !std::isfinite(variance) || !std::isfinite(value)) return {value, {}};
  const double half = student_t_quantile(0.975, variance * variance / squares) * std::sqrt(variance);
  return {value, {value - half, value + half}};
}

TradePool trade_pool(const RecordPool& pool, const std::string& which) {
  if (pool.logs.empty()) throw TradeError("the " + which + " holds no finished run");
  TradePool figures;
  figures.steps = static_cast<double>(pool.logs.front().final.step);
  for (const SpeedrunLog& log : pool.logs)
    if (log.final.step != pool.logs.front().final.step)
      throw TradeError(fmt::format("the {} holds runs of {} and of {} steps; each pool needs one step count", which,
                                   pool.logs.front().final.step, log.final.step));
  figures.metric = figures_of(final_values(pool));
  figures.time_s = figures_of(final_times_s(pool));
  if (!std::isfinite(figures.metric.mean))
    throw TradeError("the " + which + " holds a run whose last value isn't a finite number");
  if (figures.time_s.n < figures.metric.n) figures.time_s = {};
  return figures;
}

bool holds_zero(const Interval& interval) {
  return !interval.known() || (interval.low <= 0 && interval.high >= 0);
}

void compare_at(double at, LossTrade& trade) {
  const TradePool& fewer = trade.fewer;
  const TradePool& more = trade.more;
  const double gap = more.metric.mean - fewer.metric.mean;
  const double steps = more.steps - fewer.steps;
  const double seconds = more.time_s.mean - fewer.time_s.mean;
  const double part = (at - fewer.metric.mean) / gap;  // of the way from `fewer` to `more`
  trade.at = at;
  trade.extrapolated = part < 0 || part > 1;
  trade.is_far_beyond = part < -0.5 || part > 1.5;
  // d part / d (mean of fewer) = -(1 - part) / gap, d part / d (mean of more) = -part / gap, d part / d at = 1 / gap
  const double to_fewer = -(1 - part) / gap, to_more = -part / gap;
  const bool with_candidate = trade.candidate.metric.n > 0;
  const SampleFigures& candidate = trade.candidate.metric;
  const auto along = [&](double value, double length) {
    return with_candidate
               ? estimate(
                     value,
                     {{fewer.metric, length * to_fewer}, {more.metric, length * to_more}, {candidate, length / gap}})
               : estimate(value, {{fewer.metric, length * to_fewer}, {more.metric, length * to_more}});
  };
  trade.steps_at = along(fewer.steps + part * steps, steps);
  const double time = fewer.time_s.mean + part * seconds;
  const double fewer_time = 1 - part, more_time = part;
  if (!with_candidate) {
    trade.time_at_s = estimate(time, {{fewer.metric, seconds * to_fewer},
                                      {more.metric, seconds * to_more},
                                      {fewer.time_s, fewer_time},
                                      {more.time_s, more_time}});
    return;
  }
  trade.time_at_s = estimate(time, {{fewer.metric, seconds * to_fewer},
                                    {more.metric, seconds * to_more},
                                    {candidate, seconds / gap},
                                    {fewer.time_s, fewer_time},
                                    {more.time_s, more_time}});
  const double theirs = trade.candidate.time_s.mean;
  if (is_missing(theirs) || !(theirs > 0) || !(time > 0)) return;
  // Estimates the logarithm, so that the interval stays positive.
  Estimate log_factor = estimate(std::log(time / theirs), {{fewer.metric, seconds * to_fewer / time},
                                                           {more.metric, seconds * to_more / time},
                                                           {candidate, seconds / gap / time},
                                                           {fewer.time_s, fewer_time / time},
                                                           {more.time_s, more_time / time},
                                                           {trade.candidate.time_s, -1 / theirs}});
  trade.speedup_at = {time / theirs, {}};
  if (log_factor.ci95.known()) trade.speedup_at.ci95 = {std::exp(log_factor.ci95.low), std::exp(log_factor.ci95.high)};
}

}  // namespace

LossTrade loss_trade(const RecordPool& one, const RecordPool& other, const RecordPool* candidate, double at) {
  LossTrade trade;
  trade.fewer = trade_pool(one, "first pool");
  trade.more = trade_pool(other, "second pool");
  if (trade.fewer.steps == trade.more.steps)
    throw TradeError(
        fmt::format("both pools ran {} steps; a trade needs two step counts", one.logs.front().final.step));
  if (trade.fewer.steps > trade.more.steps) std::swap(trade.fewer, trade.more);
  const TradePool& fewer = trade.fewer;
  const TradePool& more = trade.more;
  const double steps = more.steps - fewer.steps;
  const double gap = more.metric.mean - fewer.metric.mean;
  const double seconds = more.time_s.mean - fewer.time_s.mean;
  trade.metric_per_step = estimate(gap / steps, {{fewer.metric, -1 / steps}, {more.metric, 1 / steps}});
  trade.s_per_step = estimate(seconds / steps, {{fewer.time_s, -1 / steps}, {more.time_s, 1 / steps}});
  if (candidate) {
    trade.candidate = trade_pool(*candidate, "candidate");
    at = trade.candidate.metric.mean;
  }
  if (is_missing(trade.metric_per_step.ci95.low)) {
    trade.note = "an interval needs two runs of each step count";
  } else if (holds_zero(trade.metric_per_step.ci95)) {
    trade.note = "the two step counts don't differ clearly in their metric, so no time at equal loss follows";
    return trade;
  }
  if (gap == 0) return trade;
  trade.s_per_metric = estimate(seconds / gap, {{fewer.metric, seconds / (gap * gap)},
                                                {more.metric, -seconds / (gap * gap)},
                                                {fewer.time_s, -1 / gap},
                                                {more.time_s, 1 / gap}});
  if (!is_missing(at)) compare_at(at, trade);
  if (trade.note.empty() && is_missing(seconds)) trade.note = "a pool's logs print no clock";
  return trade;
}

}  // namespace stepladder
