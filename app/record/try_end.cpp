// The end of a series of tries: the first state and the last one are measured in turns, and judged with the guards and
// doubts of every try.
#include <algorithm>
#include <cmath>

#include "app/record/try_series.h"
#include "storage/analysis/means/mean_test.h"
#include "storage/analysis/means/student_t.h"
#include "storage/errors.h"
#include "storage/wording.h"

namespace stepladder {

// The runs of this end: those of one that was broken off before another try say nothing about now.
std::vector<double> TrySeriesRunner::values_at_end(std::int64_t during, std::int64_t state) const {
  std::vector<double> values;
  for (const TryRun& run : runs_) {
    if (run.during >= 0) values.clear();
    if (run.during == during && run.state == state && !is_missing(run.value)) values.push_back(utility(run.value));
  }
  return values;
}

TryAnswer TrySeriesRunner::answer_of_turns(std::int64_t during, std::int64_t rounds) const {
  const std::vector<double> before = values_at_end(during, 0), after = values_at_end(during, kept().number);
  std::vector<double> gains;
  for (std::int64_t i = 0; i < rounds; ++i) gains.push_back(after[std::size_t(i)] - before[std::size_t(i)]);
  const SampleFigures figures = figures_of(gains);
  TryOpinion opinion{.gain = figures.mean, .ci95 = mean_interval(figures)};
  // Equal differences would make an interval without width. They are no evidence of low noise, so that of single runs
  // takes its place.
  const bool are_equal = rounds > 1 && !spread_of_repeats(gains, before.front()).known();
  if (are_equal) {
    const RunSpread noise =
        noise_of([&](const TryRun& run) { return (run.during == held_out) == (during == held_out); });
    const double half = noise.known() ? student_t_quantile(0.975, noise.freedom) *
                                            std::sqrt(2 * noise.variance() / static_cast<double>(rounds))
                                      : missing;
    opinion.ci95 = noise.known() ? Interval{figures.mean - half, figures.mean + half} : Interval{};
  }
  TryAnswer answer = answer_of(kept(), opinion, missing);
  answer.verdict = opinion.ci95.low > 0    ? TryVerdict::kept
                   : opinion.ci95.high < 0 ? TryVerdict::worse
                                           : TryVerdict::cannot_tell;
  answer.reason = "the first state against the last one, " + plural(rounds, "run") + " of each in turns";
  if (are_equal)
    answer.reason += opinion.ci95.known() ? "; all differences are equal, so the interval is that of single runs' noise"
                                          : "; all runs are equal to the last digit, so nobody knows the noise";
  return answer;
}

std::optional<TryAnswer> TrySeriesRunner::end(std::int64_t rounds) {
  if (tries_.back().verdict.empty()) abandon(tries_.back());
  const std::int64_t last = kept().number;
  const auto done = [&](std::int64_t during, std::int64_t state) { return std::ssize(values_at_end(during, state)); };
  const std::vector<std::int64_t> kinds =
      plan_.holdout.empty() ? std::vector{at_the_end} : std::vector{at_the_end, held_out};
  const auto whole_turns = [&] {
    std::int64_t turns = rounds;
    for (const std::int64_t kind : kinds) turns = std::min({turns, done(kind, 0), done(kind, last)});
    return turns;
  };
  TryAnswer answer{.reason = "nothing was kept"};
  if (last > 0 && rounds > 0) {
    while (whole_turns() < rounds) {
      // A turn that was begun is finished; the next one has to fit into the budget.
      const std::int64_t turn = whole_turns();
      const std::int64_t begun = done(at_the_end, 0) + done(at_the_end, last) - 2 * turn;
      const auto left = runs_left();
      if (begun == 0 && (is_spent() || (left && *left < std::int64_t(2 * kinds.size())))) break;
      // The held-out command measures what the training before it left in the copy.
      std::int64_t during = at_the_end, state = turn % 2 == 0 ? 0 : last;
      for (const std::int64_t each : {state, last - state})
        for (const std::int64_t kind : {kinds.back(), kinds.front()})
          if (done(kind, last - each) <= turn) during = kind, state = last - each;
      report_(fmt::format("turn {} of {}, {}{}", turn + 1, rounds, state == 0 ? "the first state" : "the last one",
                          during == held_out ? ", held out" : ""));
      const auto run = run_state(during, state);
      if (!run) return {};
      if (is_missing(run->value))
        throw StorageError((during == held_out ? "the held-out command: " : "") +
                           Json::parse(run->others)["error"].get<std::string>());
    }
    const std::int64_t turns = whole_turns();
    answer.reason = "the budget is spent, so what was kept wasn't measured once more";
    if (turns > 0) answer = answer_of_turns(at_the_end, turns);
    if (turns > 0 && turns < rounds) answer.reason += "; the budget allowed no more";
    if (turns > 0 && !plan_.holdout.empty()) {
      held_out_ = answer_of_turns(held_out, turns);
      if (held_out_->verdict == TryVerdict::worse && answer.verdict == TryVerdict::kept) {
        answer.verdict = TryVerdict::guard;
        answer.reason += "; by the held-out command the last state is worse";
      } else if (const Interval& held = held_out_->ci95;
                 answer.verdict == TryVerdict::kept && held_out_->verdict != TryVerdict::kept && held.known() &&
                 (plan_.figure.lower_is_better ? -held.low : held.high) < std::abs(answer.difference) / 2) {
        answer.verdict = TryVerdict::cannot_tell;
        answer.reason += "; the held-out command sees less than half of the gain";
      }
    }
  }
  if (answer.verdict == TryVerdict::kept) check_guards(at_the_end, last, answer);
  if (answer.verdict == TryVerdict::kept) check_runs(at_the_end, last, answer);
  if (wrote_sealed_ && answer.verdict == TryVerdict::kept)
    answer.verdict = TryVerdict::invalid, answer.reason = "a sealed path was written to while a run was under way";
  series_.ended_at = unix_now();
  Json json = try_json(*this, kept(), answer);
  json["runs"] = runs_of_try(at_the_end);
  json["tries"] = std::ssize(tries_) - 1;
  if (is_missing(answer.difference)) json["verdict"] = nullptr;
  json["holdout"] = nullptr;
  if (held_out_)
    json["holdout"] = {{"verdict", to_string(held_out_->verdict)},
                       {"difference", number(held_out_->difference)},
                       {"ci95", interval_json(held_out_->ci95)}};
  series_.answer = json.dump();
  store_->tries().save(series_);
  if (far_) far_->remove();
  return answer;
}

}  // namespace stepladder
