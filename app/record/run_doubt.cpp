// The doubts about a gain, gravest first: physics, a loss that is gone or worse, fewer steps, figures that nobody can
// compare or trust. Printed times that our own clock contradicts are no doubt but a note: a script may sum up its steps
// in units or on devices of its own.
#include "app/record/run_doubt.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "app/text/format.h"
#include "storage/analysis/summary.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

bool has_loss(std::span<const MeasuredRun> runs) {
  const auto is_known = [](double loss) { return !is_missing(loss); };
  return std::ranges::any_of(runs, [&](const MeasuredRun& run) {
    return std::ranges::any_of(run.series->loss, is_known) || std::ranges::any_of(run.series->val_loss, is_known);
  });
}

bool has_finite_losses(const MeasuredRun& run) {
  return std::ranges::none_of(run.series->loss, [](double loss) { return !is_missing(loss) && !std::isfinite(loss); });
}

std::vector<std::int64_t> steps_of(std::span<const MeasuredRun> runs) {
  std::vector<std::int64_t> steps;
  for (const MeasuredRun& run : runs)
    if (run.summary->steps > 0) steps.push_back(run.summary->steps);
  return steps;
}

std::string worst_flag(const RungJudgement& judged, Trust trust) {
  for (const Flag& flag : judged.flags)
    if (flag.trust() == trust) return flag.why;
  return {};
}

double wall_s_of(const MeasuredRun& run) {
  return run.run->ended_at - run.run->started_at;
}

double mean_wall_s(std::span<const MeasuredRun> runs) {
  double sum = 0;
  for (const MeasuredRun& run : runs) sum += wall_s_of(run);
  return sum / static_cast<double>(runs.size());
}

// What our own clock says against times that a log prints; a process that isn't slower than before says nothing.
std::string note_of_clock(std::span<const MeasuredRun> before, std::span<const MeasuredRun> after) {
  constexpr double most_rounding = 1.05, shortest_s = 1;  // below it, starting the process may be all
  for (const auto& [runs, whose] : {std::pair(after, "its"), std::pair(before, "the other side's")})
    for (const MeasuredRun& run : runs) {
      const Summary& summary = *run.summary;
      const double printed_s =  // at least
          summary.dt_ms_p25 / 1e3 * static_cast<double>(summary.steps - summary.untimed_steps);
      if (printed_s > most_rounding * wall_s_of(run))
        return fmt::format(
            "{} process took {}, and the step times that it prints add up to {} or more, so nobody measured them",
            whose, milliseconds_text(1e3 * wall_s_of(run)), milliseconds_text(1e3 * printed_s));
    }
  const double now = mean_wall_s(after), was = mean_wall_s(before);
  if (was > shortest_s && now >= was)
    return fmt::format("by the log's own clock; its processes took {} on average, and the other side's {}",
                       milliseconds_text(1e3 * now), milliseconds_text(1e3 * was));
  return {};
}

// The loss of a gain in time, and its steps.
DoubtedGain doubt_of_loss(std::span<const MeasuredRun> before, std::span<const MeasuredRun> after,
                          const LossParity& loss) {
  const auto guard = [](std::string reason) { return DoubtedGain{RunDoubt::guard, std::move(reason), {}}; };
  if (has_loss(before) && !has_loss(after)) return guard("the loss isn't printed any more");
  if (std::ranges::all_of(before, has_finite_losses) && !std::ranges::all_of(after, has_finite_losses))
    return guard("the loss isn't finite");
  if (loss.verdict == LossVerdict::diverged) return guard("the loss diverges");
  if (loss.verdict == LossVerdict::worse) return guard(fmt::format("the loss is worse by {:.4g} nats", loss.tail_gap));
  const std::vector<std::int64_t> steps_before = steps_of(before);
  std::vector<std::int64_t> steps = steps_of(after);
  std::ranges::sort(steps);
  const std::int64_t usual = steps.empty() ? 0 : steps[(steps.size() - 1) / 2];  // one whole run hides no short ones
  if (!steps_before.empty() && !steps.empty() && usual < std::ranges::min(steps_before))
    return guard("it trains for " + plural(usual, "step") + ", and the other side for " +
                 plural(std::ranges::min(steps_before), "step"));
  if (!has_loss(before))
    return {.doubt = RunDoubt::none, .reason = {}, .note = "no loss is printed, so nobody knows whether it stayed"};
  if (loss.verdict == LossVerdict::not_comparable)
    return {RunDoubt::cannot_tell,
            "its loss can't be compared: the sides share no step, or train on other data or numbers of tokens a step",
            {}};
  if (!loss.doubt.empty()) return {RunDoubt::cannot_tell, "its loss shows nothing: " + loss.doubt, {}};
  if (loss.verdict == LossVerdict::inconclusive)
    return {.doubt = RunDoubt::none, .reason = {}, .note = "whether the loss stayed the same is inconclusive"};
  return {};
}

}  // namespace

DoubtedGain doubt_of(std::span<const MeasuredRun> before, std::span<const MeasuredRun> after,
                     const HardwareTable& hardware, bool by_time) {
  if (after.empty()) return {};
  std::vector<Subject> sides;
  for (const auto& runs : {before, after})
    if (!runs.empty()) sides.push_back({.runs = {runs.begin(), runs.end()}});
  const std::vector<RungJudgement> judged = judge(sides, 0, hardware, {.intervals = Intervals::no});
  const RungJudgement& now = judged.back();
  const Trust base = judged.size() == 2 ? judged.front().trust : Trust::trusted;
  if (now.trust == Trust::impossible && base != Trust::impossible)
    return {RunDoubt::invalid, worst_flag(now, Trust::impossible), {}};
  if (!by_time) return {};
  DoubtedGain found;
  if (judged.size() == 2)
    found = doubt_of_loss(before, after, now.loss);
  else if (!std::ranges::all_of(after, has_finite_losses))
    found = {RunDoubt::guard, "the loss isn't finite", {}};
  if (found.doubt != RunDoubt::none) return found;
  const Trust worst = std::max(now.trust, base);
  if (worst == Trust::trusted) {
    if (const std::string note = note_of_clock(before, after); !note.empty())
      found.note += (found.note.empty() ? "" : "; ") + note;
    return found;
  }
  const bool of_now = now.trust == worst;
  return {RunDoubt::cannot_tell,
          "the figures of " + std::string(of_now ? "this side" : "the other side") + " are " +
              std::string(to_string(worst)) + ": " + worst_flag(of_now ? now : judged.front(), worst),
          {}};
}

LoadedRun loaded_from(const LoggedRun& logged) {
  LoadedRun run{.run = logged.run};
  run.run.status = RunStatus::finished;
  run.run.source = "import";
  for (const StepRecord& step : logged.steps) run.series.append(step);
  run.summary = summarise(run.run, run.series);
  return run;
}

}  // namespace stepladder
