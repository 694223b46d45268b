// The one judgement, in this order: exclude unfinished and disturbed repeats, throughput and flags of each rung, then
// gains and loss parity against previous rung and baseline, then Holm's correction. A gain with a busy machine stays
// inconclusive, whatever the numbers say; across two machines there is none.
#include "storage/analysis/judgement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <tuple>

#include "storage/analysis/counted_runs.h"
#include "storage/analysis/recipe_facts.h"
#include "storage/analysis/rung_order.h"
#include "storage/analysis/step_sums.h"
#include "storage/by_enum.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

// Why a run without a speed has none.
std::string why_untimed(const MeasuredRun& run) {
  if (run.summary->steps > 0) return run.summary->untimed_steps > 0 ? "no step times" : "only warm-up steps";
  switch (run.run->status) {
    case RunStatus::queued:
      return "queued";
    case RunStatus::running:
      return "no step yet";
    case RunStatus::failed:
    case RunStatus::stopped:
    case RunStatus::interrupted:
      return std::string(to_string(run.run->status)) + " before a step";
    case RunStatus::finished:
    case RunStatus::reported:
      break;
  }
  return "no steps";
}

bool is_timed(const RungJudgement& rung) {
  return !is_missing(rung.tokens_per_s) || !is_missing(rung.steps_per_s);
}

void take_throughput(RungJudgement& rung, const Subject& subject) {
  std::vector<const Summary*> summaries;
  std::vector<double> steps_per_s;
  for (const MeasuredRun& run : subject.runs) {
    summaries.push_back(run.summary);
    if (subject.runs.size() > 1 && !is_missing(run.summary->tokens_per_s))
      rung.each_tokens_per_s.push_back(run.summary->tokens_per_s);
    if (run.summary->dt_ms_median > 0) steps_per_s.push_back(1000 / run.summary->dt_ms_median);
  }
  const Throughput throughput = throughput_of(summaries);
  rung.tokens_per_s = throughput.median;
  rung.low = throughput.low;
  rung.high = throughput.high;
  rung.steps_per_s = median_of(std::move(steps_per_s));
  if (!is_timed(rung)) rung.why_untimed = why_untimed(subject.runs.front());
}

// The interval of the rung's own step time, or why it has none.
void take_interval(RungJudgement& rung, const Sample& sample, const RunSpread& known) {
  rung.step_time_ci95 = own_interval(sample, known);
  if (rung.step_time_ci95.known() || !is_timed(rung)) return;
  if (sample.repeats.size() < 2) {
    rung.why_no_interval = is_missing(rung.steps_per_s) ? "no step times" : "too few steps";
    return;
  }
  const auto [least, most] = std::ranges::minmax_element(sample.repeats);
  rung.why_no_interval =
      std::to_string(sample.repeats.size()) + " runs, " + significant(*most / *least, 2) + " x apart";
}

// Why the factor over the baseline is missing, of a rung beside it.
std::string reason_without_factor(const Subject& base_subject, const RungJudgement& base, const Subject& subject,
                                  const RungJudgement& rung, bool is_together) {
  if (!subject.mixes.empty()) return "mixes " + subject.mixes;
  if (!base_subject.mixes.empty()) return "baseline mixes " + base_subject.mixes;
  if (!rung.why_untimed.empty()) return rung.why_untimed;
  if (!base.why_untimed.empty()) return "baseline: " + base.why_untimed;
  return is_together ? "tokens per step unknown" : "another machine";
}

// Whether a run is running or queued, and none has finished.
bool is_under_way(const Subject& subject) {
  const auto has = [&](RunStatus status) {
    return std::ranges::any_of(subject.runs, [&](const MeasuredRun& run) { return run.run->status == status; });
  };
  return (has(RunStatus::running) || has(RunStatus::queued)) && !has(RunStatus::finished);
}

// The flag names the repeat that has it, unless it is the first one.
Flag of_repeat(Flag flag, const MeasuredRun& run, const Subject& subject) {
  if (run.run != subject.runs.front().run) flag.why = fmt::format("Repeat {}: {}", run.run->repeat + 1, flag.why);
  return flag;
}

// A rung gets each flag of any repeat once, with the sentence of the first repeat that has it.
void take_plausibility(RungJudgement& rung, const Subject& subject, int repeats, const HardwareTable& hardware,
                       std::span<const RunPlace> baseline) {
  rung.is_checked = true;
  for (const MeasuredRun& run : subject.runs) {
    Plausibility found = plausibility_of(*run.run, *run.summary, repeats, hardware, baseline);
    rung.trust = std::max(rung.trust, found.trust);
    rung.is_checked = rung.is_checked && found.is_checked;
    for (Flag& flag : found.flags) {
      const bool known = std::ranges::any_of(rung.flags, [&](const Flag& other) { return other.id == flag.id; });
      if (known) continue;
      rung.flags.push_back(of_repeat(std::move(flag), run, subject));
    }
  }
  std::ranges::stable_sort(rung.flags, {}, &Flag::id);
  const MeasuredRun& first = subject.runs.front();
  rung.limit = limit_of(*first.run, *first.summary, hardware);
  const std::int64_t params = params_of(*first.run, *first.summary).count;
  if (!is_missing(rung.limit.tflops) && !is_missing(rung.tokens_per_s))
    rung.limit.tflops = 6 * static_cast<double>(params) * rung.tokens_per_s / 1e12;
}

// A kind of flag that it has already stays as it is.
void add_flag(RungJudgement& rung, std::optional<Flag> flag) {
  if (!flag || std::ranges::find(rung.flags, flag->id, &Flag::id) != rung.flags.end()) return;
  rung.trust = std::max(rung.trust, flag->trust());
  rung.flags.push_back(*std::move(flag));
  std::ranges::stable_sort(rung.flags, {}, &Flag::id);
}

// A factor between two files whose times nobody here has measured may be that of their units.
void doubt_units(const Subject& base, const RungJudgement& base_rung, const Subject& of, RungJudgement& rung) {
  const auto is_ours = [](const MeasuredRun& run) { return run.run->is_ours(); };
  if (std::ranges::all_of(base.runs, is_ours) && std::ranges::all_of(of.runs, is_ours)) return;
  add_flag(rung, doubt_unit(factor_over(base_rung, rung)));
}

// Says why a rung of copies isn't repeated.
void note_copies(std::size_t copies, RungJudgement& rung) {
  for (Flag& flag : rung.flags)
    if (copies > 0 && flag.id == FlagId::not_repeated)
      flag.why += fmt::format(" {} runs have the same figures to the last digit, so they count as one.", copies + 1);
}

// The looks of the verification that repeated both sides, at their medians; else, where somebody added runs to one, a
// look at each number of runs so far; else none.
Looks looks_at(const Subject& base, const Subject& of) {
  const auto limit = [](const Subject& subject) {
    std::int64_t most = 0;
    for (const MeasuredRun& run : subject.runs) most = std::max(most, run.run->looks_up_to);
    return most;
  };
  // Whoever adds to one side alone has looked at each of its numbers of runs.
  const auto looked_at = [](const Subject& side) {
    const auto is_added = [](const MeasuredRun& run) { return run.run->looks_up_to == added_after_a_look; };
    return std::ranges::any_of(side.runs, is_added) ? side.runs.size() : 0;
  };
  if (std::min(base.runs.size(), of.runs.size()) < 2) return {};
  if (const std::int64_t most = std::min(limit(base), limit(of)); most > 0)
    return Looks(static_cast<std::size_t>(most));
  const std::size_t most = std::max(looked_at(base), looked_at(of));
  if (most < 2) return {};
  Looks looks(most);
  looks.in_pairs = false;
  return looks;
}

// Whether there is a verdict after these runs: not between two looks at pairs of them. The last look comes early if
// runs that don't count were among the `tried` ones.
bool is_at_look(const Looks& looks, std::size_t runs, int tried) {
  return !looks.in_pairs || looks.is_at(runs) || tried >= static_cast<int>(looks.runs.back());
}

std::vector<RunPlace> places_of(const Subject& subject) {
  std::vector<RunPlace> places;
  for (const MeasuredRun& run : subject.runs) {
    RunPlace place = place_of(*run.run);
    if (std::ranges::find(places, place) == places.end()) places.push_back(std::move(place));
  }
  return places;
}

// Whether all runs of both sides were measured in one place, as far as it is known.
bool are_together(std::span<const RunPlace> base, std::span<const RunPlace> rung) {
  return std::ranges::all_of(rung, [&](const RunPlace& place) { return why_no_factor(base, place).empty(); });
}

// Whether a ladder or, of imported runs, a file joins the two, so that what one of them names is the other's too.
bool are_joined(const Run& a, const Run& b) {
  return a.ladder && a.ladder == b.ladder && (a.source != "import" || a.source_path == b.source_path);
}

// Whether one side alone names its hardware, and nothing joins the two: nobody knows whether they ran on the same.
bool are_perhaps_apart(const Subject& base, const Subject& of) {
  const Run &a = *base.runs.front().run, &b = *of.runs.front().run;
  return a.hardware.empty() != b.hardware.empty() && !are_joined(a, b);
}

// A factor between other numbers of devices is that of the devices too.
std::optional<Flag> doubt_devices(const Subject& base, const Subject& subject) {
  const Run &base_run = *base.runs.front().run, &run = *subject.runs.front().run;
  const RecipeFacts a = recipe_facts(base_run), b = recipe_facts(run);
  std::string why;
  if (a.names_devices && b.names_devices && a.devices != b.devices)
    why = fmt::format("It ran on {} and the baseline on {}, so the factor is also theirs.", plural(b.devices, "device"),
                      a.devices);
  else if (a.names_devices != b.names_devices && std::max(a.devices, b.devices) > 1 && !are_joined(base_run, run))
    why = fmt::format(
        "Only one of this run and the baseline names its devices ({}), so nobody knows whether they ran "
        "on as many.",
        std::max(a.devices, b.devices));
  if (why.empty()) return std::nullopt;
  return Flag{.id = FlagId::other_machine, .why = std::move(why), .doubts = true};
}

// Of two files, a factor between models of other sizes is that of the models too. Untying GPT-2's head adds less than
// a quarter, and another vocabulary that the recipes name may add more.
std::optional<Flag> doubt_model(const Run& base, const Run& run) {
  constexpr double most_alike = 0.75;
  const auto is_printed = [](const Run& of) { return of.source == "import" || of.is_claimed; };
  if (!is_printed(base) || !is_printed(run)) return std::nullopt;
  const auto differ = [](auto a, auto b) {
    return std::min(a, b) > 0 && static_cast<double>(std::min(a, b)) < most_alike * static_cast<double>(std::max(a, b));
  };
  const auto size = [](const RecipeFacts& of) {
    return static_cast<double>(of.layers) * static_cast<double>(of.d_model) * static_cast<double>(of.d_model);
  };
  const RecipeFacts a = recipe_facts(base), b = recipe_facts(run);
  if (std::min(base.params, run.params) <= 0 && differ(size(a), size(b)))
    return Flag{.id = FlagId::other_machine,
                .why = fmt::format("The models differ, so the factor is also the model's: {} layers of width {} and {} "
                                   "of width {}.",
                                   a.layers, a.d_model, b.layers, b.d_model),
                .doubts = true};
  if (!differ(base.params, run.params) || differ(a.vocab, b.vocab)) return std::nullopt;
  return Flag{.id = FlagId::other_machine,
              .why = fmt::format("The models differ, so the factor is also the model's: {} and {} parameters.",
                                 compact(static_cast<double>(base.params)), compact(static_cast<double>(run.params))),
              .doubts = true};
}

// A gain in the medians may not be one of all steps, or of the wall clock: in any repeat, or in all together.
void doubt_medians(const Subject& base, const RungJudgement& base_rung, const Subject& of, RungJudgement& rung) {
  const double factor = factor_over(base_rung, rung);
  const auto times = [](const Subject& subject) {
    std::vector<RunTimes> all;
    for (const MeasuredRun& run : subject.runs) all.push_back({*run.run, *run.summary, *run.series});
    return all;
  };
  const std::vector<RunTimes> theirs = times(base), ours = times(of);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    std::optional<Flag> flag = doubt_sums(factor, theirs, {&ours[i], 1});
    for (const RunTimes& each : theirs)
      if (!flag) flag = doubt_median(factor, each, ours[i]);
    if (flag) return add_flag(rung, of_repeat(*std::move(flag), of.runs[i], of));
  }
  add_flag(rung, doubt_sums(factor, theirs, ours));
}

void doubt_place(const Subject& base, const Subject& subject, RungJudgement& rung) {
  std::optional<Flag> flag = doubt_devices(base, subject);
  if (are_perhaps_apart(base, subject))
    flag = {FlagId::other_machine,
            "Only one of this run and the baseline names its hardware, so nobody knows whether they ran on the same."};
  if (!flag) flag = doubt_model(*base.runs.front().run, *subject.runs.front().run);
  add_flag(rung, std::move(flag));
}

// Whether the factor compares equal work on one machine: a factor of steps/s does only if the steps are equal.
bool is_like_for_like(const Subject& base, const RungJudgement& base_rung, const Subject& of,
                      const RungJudgement& rung) {
  if (are_perhaps_apart(base, of)) return false;
  if (!is_missing(base_rung.tokens_per_s) && !is_missing(rung.tokens_per_s)) return true;
  const MeasuredRun& a = base.runs.front();
  const MeasuredRun& b = of.runs.front();
  return have_equal_steps(*a.run, *a.series, *b.run, *b.series);
}

// Whether a run of the side is over after so few steps that these are no speed, however many runs there are.
bool is_short(const Subject& side) {
  constexpr std::int64_t fewest_steady = 8;
  return std::ranges::any_of(side.runs, [](const MeasuredRun& run) {
    const Summary& of = *run.summary;
    return of.steps > 0 && of.last_step - of.first_step + 1 - of.warmup_steps < fewest_steady;
  });
}

bool is_busy(const RungJudgement& rung) {
  return std::ranges::any_of(rung.flags, [](const Flag& flag) { return flag.id == FlagId::busy_machine; });
}

// Whether more runs could settle what two sides differ in: not if one is impossible, or if others disturbed one, whose
// scatter and time then aren't those of a quiet machine.
bool can_repeats_settle(const RungJudgement& base, const RungJudgement& rung) {
  return std::max(base.trust, rung.trust) < Trust::impossible && !is_busy(base) && !is_busy(rung);
}

// From the start to the end of the median run. Of a log that somebody imported these aren't known, nor is the machine
// that would repeat it.
double run_seconds_of(const Subject& subject) {
  std::vector<double> seconds;
  for (const MeasuredRun& run : subject.runs)
    if (const double known = run.run->ended_at - run.run->started_at; known > 0) seconds.push_back(known);
  return median_of(std::move(seconds));
}

const RunSpread& wider(const RunSpread& a, const RunSpread& b) {
  return !a.known() || (b.known() && b.variance() > a.variance()) ? b : a;
}

Sample sample_of(const Subject& subject) {
  std::vector<MeasuredRun> all = subject.runs;
  all.insert(all.end(), subject.siblings.begin(), subject.siblings.end());
  return sample_of(subject.runs.front(), all, subject.runs.size());
}

// Without those of logs that just end, unless all do.
std::vector<LossRun> losses_of(const std::vector<MeasuredRun>& runs) {
  std::vector<LossRun> losses;
  const bool are_all_cut = std::ranges::all_of(runs, is_cut_log);
  for (const MeasuredRun& run : runs)
    if (are_all_cut || !is_cut_log(run)) losses.push_back({run.run, run.series});
  return losses;
}

// The known spread of losses of such runs, pooled with the repeats of the baseline.
RunSpread known_loss_spread(const Subject& base, const SpreadTable& table) {
  const RunSpread known = table.loss(base.runs.front().summary->steps);
  if (!known.known()) return known;
  std::vector<MeasuredRun> repeats = base.runs;
  for (const MeasuredRun& sibling : base.siblings)
    if (!sibling.series->empty()) repeats.push_back(sibling);
  return pooled(known, loss_spread(losses_of(repeats)));
}

// Finds a run whose loss became NaN between the steps of an excerpt, by its summary.
const MeasuredRun* lost_between(const Subject& against, const Subject& subject) {
  const Summary& base = *against.runs.front().summary;
  const auto lost = std::ranges::find_if(subject.runs, [&](const MeasuredRun& run) {
    return run.is_excerpt() && run.summary->nonfinite_steps > 0 && base.nonfinite_steps == 0 &&
           run.summary->first_nonfinite_step <= base.last_step;
  });
  return lost == subject.runs.end() ? nullptr : &*lost;
}

LossParity rung_parity(const Subject& against, const Subject& subject, const RunSpread& known) {
  const LossParity parity = loss_parity(losses_of(against.runs), losses_of(subject.runs), {.known = known});
  const MeasuredRun* lost = lost_between(against, subject);
  if (!lost || parity.verdict == LossVerdict::not_comparable) return parity;
  return {.verdict = LossVerdict::diverged,
          .max_gap = std::numeric_limits<double>::infinity(),
          .at_step = lost->summary->first_nonfinite_step};
}

}  // namespace

std::string_view to_string(RungAnswer answer) {
  return by_enum<RungAnswer, std::string_view>("baseline", "real", "faster-one-run", "slower", "slower-one-run",
                                               "noise", "cannot-tell", "impossible", "no-effect")[answer];
}

RungAnswer RungJudgement::answer() const {
  if (trust == Trust::impossible) return RungAnswer::impossible;
  if (is_baseline) return RungAnswer::baseline;
  const bool is_one_run = own_step.runs == 1;
  if (own_step.is(Verdict::faster)) return is_one_run ? RungAnswer::faster_once : RungAnswer::real;
  if (own_step.is(Verdict::slower)) return is_one_run ? RungAnswer::slower_once : RungAnswer::slower;
  const bool is_within = own_step.worst() == Trust::trusted && own_step.ci95.low <= 1 && own_step.ci95.high >= 1;
  if (does_the_same && is_within) return RungAnswer::no_effect;
  return own_step.is(Verdict::same) ? RungAnswer::noise : RungAnswer::cannot_tell;
}

Throughput throughput_of(std::span<const Summary* const> repeats) {
  std::vector<const Summary*> measured;
  std::vector<double> figures;
  for (const Summary* summary : repeats) {
    if (is_missing(summary->tokens_per_s)) continue;
    measured.push_back(summary);
    figures.push_back(summary->tokens_per_s);
  }
  if (figures.empty()) return {};
  if (figures.size() == 1)
    return {figures.front(), measured.front()->tokens_per_s_p25, measured.front()->tokens_per_s_p75};
  const auto [low, high] = std::minmax_element(figures.begin(), figures.end());
  const Throughput range{.low = *low, .high = *high};
  return {median_of(std::move(figures)), range.low, range.high};
}

// A rate is the inverse of a time, so the ends of its interval are swapped.
Interval RungJudgement::rate_ci95(double rate) const {
  if (!step_time_ci95.known() || is_missing(rate)) return {};
  return {rate / step_time_ci95.high, rate / step_time_ci95.low};
}

double factor_over(const RungJudgement& base, const RungJudgement& rung) {
  const auto ratio = [](double numerator, double denominator) {
    return numerator > 0 && denominator > 0 ? numerator / denominator : missing;
  };
  if (is_missing(base.tokens_per_s) || is_missing(rung.tokens_per_s)) return ratio(rung.steps_per_s, base.steps_per_s);
  return ratio(rung.tokens_per_s, base.tokens_per_s);
}

const Run& reference_of(std::span<const Run* const> runs) {
  const auto finished = std::ranges::find_if(runs, [](const Run* run) { return run->status == RunStatus::finished; });
  return finished == runs.end() ? *runs.front() : **finished;
}

namespace {

// The repeats of the lowest rung that finished undisturbed, else those with figures, else all of them; in order.
std::vector<RunWithSummary> baseline_repeats(std::span<const RunWithSummary> runs) {
  int lowest = runs.front().first->rung;
  for (const auto& [run, summary] : runs) lowest = std::min(lowest, run->rung);
  std::vector<RunWithSummary> repeats, measured, undisturbed;
  for (const RunWithSummary& each : runs) {
    if (each.first->rung != lowest) continue;
    repeats.push_back(each);
    if (!is_unmeasured(*each.second)) measured.push_back(each);
    if (each.first->status == RunStatus::finished && !is_disturbed(*each.second)) undisturbed.push_back(each);
  }
  std::vector<RunWithSummary>& all = !undisturbed.empty() ? undisturbed : !measured.empty() ? measured : repeats;
  std::ranges::stable_sort(all, {}, [](const RunWithSummary& each) { return each.first->repeat; });
  return all;
}

}  // namespace

const Run& baseline_of(std::span<const RunWithSummary> runs) {
  std::vector<const Run*> repeats;
  for (const auto& [run, summary] : baseline_repeats(runs)) repeats.push_back(run);
  return reference_of(repeats);
}

Summary baseline_speed(std::span<const RunWithSummary> runs) {
  std::vector<double> tokens_per_s, dt_ms;
  for (const auto& [run, summary] : baseline_repeats(runs)) {
    if (!is_missing(summary->tokens_per_s)) tokens_per_s.push_back(summary->tokens_per_s);
    if (!is_missing(summary->dt_ms_median)) dt_ms.push_back(summary->dt_ms_median);
  }
  Summary speed;
  speed.tokens_per_s = median_of(std::move(tokens_per_s));
  speed.dt_ms_median = median_of(std::move(dt_ms));
  return speed;
}

Sample sample_of(const MeasuredRun& run, std::span<const MeasuredRun> repeats, std::size_t averaged) {
  Sample sample{.steps = sample_steps(steady_dt_ms(*run.series, *run.summary), read_from(*run.run)),
                .averaged = averaged};
  for (const MeasuredRun& repeat : repeats)
    if (!is_missing(repeat.summary->dt_ms_median)) sample.repeats.push_back(repeat.summary->dt_ms_median);
  return sample;
}

namespace {

// One pair of rungs has one verdict, though it is in two families.
void withdraw_both(SpeedUp& a, SpeedUp& b) {
  if (a.verdict == b.verdict && a.is_open == b.is_open) return;
  const auto is_withdrawn = [](const SpeedUp& of) { return of.verdict == Verdict::cannot_tell && !of.is_open; };
  a.is_open = b.is_open = !is_withdrawn(a) && !is_withdrawn(b);
  a.verdict = b.verdict = Verdict::cannot_tell;
}

void agree_on_baseline(std::span<RungJudgement* const> rungs) {
  for (RungJudgement* rung : rungs)
    if (rung->stands_on_baseline) withdraw_both(rung->over_baseline, rung->own_step);
}

}  // namespace

// Each kind of gain is a family of its own.
void hold_together(std::span<RungJudgement* const> rungs, std::size_t unjudged) {
  std::vector<SpeedUp*> over_baseline, own_steps;
  for (RungJudgement* rung : rungs) {
    if (rung->is_baseline) continue;
    over_baseline.push_back(&rung->over_baseline);
    own_steps.push_back(&rung->own_step);
  }
  hold_together(over_baseline, unjudged);
  hold_together(own_steps, unjudged);
  agree_on_baseline(rungs);
}

namespace {

void hold_families_together(std::vector<RungJudgement>& rungs) {
  std::vector<RungJudgement*> all;
  std::vector<SpeedUp*> over_previous;
  for (RungJudgement& rung : rungs) {
    all.push_back(&rung);
    if (all.size() > 1) over_previous.push_back(&rung.over_previous);
  }
  hold_together(over_previous);
  hold_together(all, 0);
  for (RungJudgement& rung : rungs)
    if (rung.stands_on_previous) withdraw_both(rung.over_previous, rung.own_step);
  agree_on_baseline(all);
}

// The operators of a profiled step, in one order, without their times.
std::vector<std::tuple<std::string_view, std::string_view, std::string_view, double>> operators_of(
    const StepProfile& profile) {
  std::vector<std::tuple<std::string_view, std::string_view, std::string_view, double>> operators;
  for (const OperatorTime& each : profile.operators)
    operators.emplace_back(each.part, each.name, each.shapes, each.calls);
  std::ranges::sort(operators);
  return operators;
}

// Equal losses alone show equal maths: another order of the work may be as exact, and faster.
bool do_the_same(const Subject& base, const Subject& rung) {
  const auto is_known = [](const MeasuredRun& run) {
    return run.profile && run.profile->steps > 0 && !run.is_excerpt() && run.series->size() > 0;
  };
  const auto is_same = [](const MeasuredRun& a, const MeasuredRun& b) {
    return a.series->step == b.series->step && a.series->loss == b.series->loss &&  // a NaN equals none
           operators_of(*a.profile) == operators_of(*b.profile);
  };
  return std::ranges::any_of(base.runs, [&](const MeasuredRun& a) {
    return is_known(a) &&
           std::ranges::any_of(rung.runs, [&](const MeasuredRun& b) { return is_known(b) && is_same(a, b); });
  });
}

// What makes a comparison with the baseline doubtful, though each side alone isn't.
void doubt_comparisons(std::span<const Subject> subjects, std::size_t baseline, std::vector<RungJudgement>& rungs) {
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    if (i == baseline) continue;
    doubt_units(subjects[baseline], rungs[baseline], subjects[i], rungs[i]);
    doubt_medians(subjects[baseline], rungs[baseline], subjects[i], rungs[i]);
    doubt_place(subjects[baseline], subjects[i], rungs[i]);
  }
}

// What is known of the subject at this place without another.
RungJudgement judged_alone(const Subject& all, const Counted& counted, std::size_t place, const HardwareTable& hardware,
                           const std::vector<RunPlace>& baseline) {
  const Subject& subject = counted.subjects[place];
  RungJudgement rung{.rung = subject.rung};
  for (const MeasuredRun& run : all.runs) rung.runs.push_back(run.run);
  rung.count = counted.counts[place];
  rung.is_under_way = is_under_way(all);
  take_throughput(rung, subject);
  rung.run_seconds = run_seconds_of(subject);
  take_plausibility(rung, subject, counted.repeats[place], hardware, baseline);
  note_copies(counted.copies[place], rung);
  return rung;
}

}  // namespace

std::vector<RungJudgement> judge(std::span<const Subject> all_subjects, std::size_t baseline,
                                 const HardwareTable& hardware, const JudgementOptions& options) {
  const Counted counted = count_runs(all_subjects);
  const std::vector<Subject>& subjects = counted.subjects;
  const bool with_intervals = options.intervals == Intervals::yes;
  std::vector<std::vector<RunPlace>> places;
  for (const Subject& subject : subjects) places.push_back(places_of(subject));
  std::vector<RungJudgement> rungs;
  std::vector<Sample> samples;
  for (const Subject& subject : subjects) {
    const std::size_t place = rungs.size();
    rungs.push_back(judged_alone(all_subjects[place], counted, place, hardware, places[baseline]));
    rungs.back().noise_floor = options.noise_floor;
    samples.push_back(with_intervals ? sample_of(subject) : Sample{});
  }
  doubt_comparisons(subjects, baseline, rungs);
  std::vector<RunSpread> known;
  for (std::size_t i = 0; with_intervals && i < rungs.size(); ++i) {
    known.push_back(hardware.spreads.step_time(run_of(subjects[i]), *subjects[i].runs.front().summary));
    take_interval(rungs[i], samples[i], known[i]);
  }
  const auto gain = [&](std::size_t base, std::size_t of) {
    Gain found;
    const double over = factor_over(rungs[base], rungs[of]);
    const Looks looks = looks_at(subjects[base], subjects[of]);
    static_cast<SpeedUp&>(found) =
        with_intervals
            ? judge_speedup(
                  over, samples[base], samples[of],
                  {.noise_floor = options.noise_floor, .known = wider(known[base], known[of]), .looks = looks})
            : SpeedUp{.factor = over};
    if (!is_at_look(looks, found.runs, std::min(counted.repeats[base], counted.repeats[of])))
      found.verdict = Verdict::cannot_tell;
    const bool is_together = are_together(places[base], places[of]);
    const bool is_here = is_together && is_like_for_like(subjects[base], rungs[base], subjects[of], rungs[of]);
    if (!is_here || is_busy(rungs[base]) || is_busy(rungs[of]) || is_short(subjects[base]) || is_short(subjects[of]))
      found.verdict = Verdict::cannot_tell;
    if (!is_here || !can_repeats_settle(rungs[base], rungs[of])) found.needed_runs = 0;
    if (!is_together || !subjects[base].mixes.empty() || !subjects[of].mixes.empty()) static_cast<SpeedUp&>(found) = {};
    found.trust = is_here || is_missing(over) ? rungs[of].trust : std::max(rungs[of].trust, Trust::doubtful);
    found.base_trust = rungs[base].trust;
    if (found.worst() == Trust::impossible) found.verdict = Verdict::cannot_tell;
    return found;
  };
  const RunSpread of_losses = rungs.empty() ? RunSpread{} : known_loss_spread(subjects[baseline], hardware.spreads);
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    RungJudgement& rung = rungs[i];
    const std::size_t below = subjects[i].stands_on.value_or(baseline);
    rung.stands_on = rungs[below].rung;
    if (i > 0) rung.over_previous = gain(i - 1, i);
    if (i == baseline) {
      rung.is_baseline = true;
      rung.over_baseline.factor = is_timed(rung) ? 1 : missing;
      rung.why_no_factor = rung.why_untimed;
      rung.over_baseline.trust = rung.over_baseline.base_trust = rung.trust;
      rung.loss = {.verdict = LossVerdict::same, .max_gap = 0, .at_step = 0, .tail_gap = 0, .ci95 = {0, 0}};
      continue;
    }
    rung.over_baseline = gain(baseline, i);
    if (is_missing(rung.over_baseline.factor))
      rung.why_no_factor = reason_without_factor(subjects[baseline], rungs[baseline], subjects[i], rung,
                                                 are_together(places[baseline], places[i]));
    rung.stands_on_baseline = below == baseline;
    rung.stands_on_previous = below + 1 == i;
    rung.own_step = below == baseline ? rung.over_baseline : below + 1 == i ? rung.over_previous : gain(below, i);
    rung.does_the_same = do_the_same(subjects[below], subjects[i]);
    rung.needed_run_seconds = rungs[baseline].run_seconds + rung.run_seconds;
    const Subject& against = subjects[subjects[i].loss_against.value_or(baseline)];
    rung.loss_against = against.rung;
    if (subjects[i].mixes.empty() && against.mixes.empty()) rung.loss = rung_parity(against, subjects[i], of_losses);
    if (!can_repeats_settle(rungs[baseline], rung)) rung.loss.needed_runs = 0;
  }
  if (!options.apart) hold_families_together(rungs);
  return rungs;
}

std::vector<RungJudgement> judge_rungs(std::span<const MeasuredRun> runs, const HardwareTable& hardware, int baseline,
                                       const JudgementOptions& options) {
  std::map<int, Subject> by_rung;
  for (const MeasuredRun& run : runs) by_rung[run.run->rung].runs.push_back(run);
  std::vector<Subject> subjects;
  std::map<int, std::size_t> place;
  for (auto& [rung, subject] : by_rung) {
    subject.rung = rung;
    std::ranges::stable_sort(subject.runs,
                             [](const MeasuredRun& a, const MeasuredRun& b) { return a.run->repeat < b.run->repeat; });
    place[rung] = subjects.size();
    subjects.push_back(std::move(subject));
  }
  const auto base = place.find(baseline);
  const std::size_t base_place = base == place.end() ? 0 : base->second;
  const std::vector<std::size_t> below = inferred_places_below(subjects, base_place);
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    subjects[i].stands_on = below[i];
    const std::int64_t launched_on = subjects[i].runs.front().run->stands_on;
    const auto named = std::ranges::find(subjects, launched_on, &Subject::rung);
    if (launched_on < 0 || i == base_place || named - subjects.begin() >= static_cast<std::ptrdiff_t>(i)) continue;
    subjects[i].stands_on = launched_on == 0 ? base_place : static_cast<std::size_t>(named - subjects.begin());
  }
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const auto named = place.find(subjects[i].runs.front().run->loss_against);
    if (named == place.end() || named->second <= base_place || named->second >= i) continue;
    if (!subjects[named->second].runs.front().series->empty()) subjects[i].loss_against = named->second;
  }
  std::vector<RungJudgement> judged = judge(subjects, base_place, hardware, options);
  const bool has_choice = subjects.size() > 2 || (subjects.size() > 1 && run_of(subjects.front()).source != "launched");
  if (has_choice && is_sweep(subjects))
    for (RungJudgement& rung : judged) rung.over_previous = {};  // neighbours in a list of values, not steps
  return judged;
}

PairJudgement judge_pair(std::span<const MeasuredRun> runs, int base, int rung, const HardwareTable& hardware,
                         const JudgementOptions& options) {
  std::vector<RungJudgement> judged = judge_rungs(runs, hardware, -1, options);
  const auto at = [&](int number) { return std::ranges::find(judged, number, &RungJudgement::rung); };
  if (at(rung)->is_baseline || (at(rung)->stands_on != base && !at(base)->is_baseline))
    judged = judge_rungs(runs, hardware, base, options);
  const Gain& gain = at(rung)->stands_on == base ? at(rung)->own_step : at(rung)->over_baseline;
  return {gain, *at(base), *at(rung)};
}

}  // namespace stepladder
