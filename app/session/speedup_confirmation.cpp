// Repeats two rungs in turns until the verdict is clear, at most `max_repeats` times. Each look reads the finished runs
// from the database, judges them, then answers or begins a round. A verdict counts only at a planned look (`Looks`,
// storage/analysis/compare.h), since each look takes a share of the allowed error.
#include "app/session/speedup_confirmation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "app/runs/excerpt.h"
#include "app/text/verdict_text.h"
#include "engine/recipe.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

std::string number_of(const Run& run) {
  return fmt::format("run {}", run.id);
}

bool is_same_rung(const Run& a, const Run& b) {
  return a.id == b.id || (a.ladder && a.ladder == b.ladder && a.rung == b.rung);
}

// The first reason for `trust` among the flags of a rung.
const Flag* reason_for(Trust trust, const RungJudgement& rung) {
  const auto flag = std::ranges::find_if(rung.flags, [&](const Flag& each) { return each.trust() == trust; });
  return flag == rung.flags.end() ? nullptr : &*flag;
}

bool is_doubted_only_for(FlagId id, const RungJudgement& rung) {
  return std::ranges::all_of(rung.flags,
                             [&](const Flag& flag) { return flag.id == id || flag.trust() == Trust::trusted; });
}

constexpr int fewest_before_giving_up = 3;

}  // namespace

int repeats_to_verify(const RungJudgement& rung) {
  constexpr std::int64_t usual = 6, most = 50;
  return static_cast<int>(std::clamp(rung.count.counted() + rung.own_step.needed_runs, usual, most));
}

SpeedupConfirmation::SpeedupConfirmation(RunStore& store, SpeedupQuestion question, HardwareTable hardware,
                                         Repeat repeat)
    : store_(store),
      question_(question),
      looks_(static_cast<std::size_t>(question.max_repeats)),
      hardware_(std::move(hardware)),
      repeat_(std::move(repeat)) {
  base_.asked = store_.existing_run(question_.base);
  run_.asked = store_.existing_run(question_.run);
  if (is_same_rung(base_.asked, run_.asked))
    throw RecipeError(number_of(run_.asked), "is compared with itself; name another run to compare it with");
  for (Side* side : {&run_, &base_}) {
    if (side->asked.source != "launched")
      throw RecipeError(number_of(side->asked), "was not launched here, so it cannot be repeated");
    load_finished(*side);
    if (side->runs.empty())
      throw RecipeError(number_of(side->asked),
                        "never reached its last step; both sides need one finished run to be compared");
  }
  is_in_one_ladder_ = base_.asked.ladder && base_.asked.ladder == run_.asked.ladder;
  if (is_in_one_ladder_) load_others();
}

void SpeedupConfirmation::look() {
  if (!is_open()) return;
  try {
    if (!round_is_over() || !is_open()) return;
    load_finished(base_);
    load_finished(run_);
    judge_runs();
    decide();
  } catch (const std::exception& error) {  // StorageError, or a repeat that cannot be launched
    fail(error.what());
  }
}

// Also ends the question if a run of the round didn't finish: it would be repeated forever.
bool SpeedupConfirmation::round_is_over() {
  std::vector<Run> runs;
  for (const RunId id : round_) runs.push_back(store_.existing_run(id));
  for (const Run& run : runs) {
    if (!is_over(run.status) || run.status == RunStatus::finished) continue;
    fail(run.name + " " + (run.status == RunStatus::failed ? "failed" : "was " + std::string(to_string(run.status))) +
         (run.reason.empty() ? "" : " (" + run.reason + ")") + ", so no more repeats are made.");
  }
  return std::ranges::all_of(runs, [](const Run& run) { return is_over(run.status); });
}

void SpeedupConfirmation::load_finished(Side& side) {
  std::vector<Run> candidates;
  if (side.asked.ladder) {
    candidates = store_.runs_of(*side.asked.ladder);
    std::erase_if(candidates, [&](const Run& run) { return run.rung != side.asked.rung; });
  } else {
    candidates.push_back(store_.existing_run(side.asked.id));
    for (const RunId id : side.repeated) candidates.push_back(store_.existing_run(id));
  }
  const std::int64_t most_steps = most_steps_of_each(2 * static_cast<std::size_t>(question_.max_repeats));
  for (const Run& run : candidates) {
    const bool is_loaded =
        std::ranges::any_of(side.runs, [&](const LoadedRun& loaded) { return loaded.run.id == run.id; });
    if (run.status != RunStatus::finished || is_loaded) continue;
    side.runs.push_back(load_run(store_, run, most_steps));
    if (question_.metric) continue;
    std::int64_t& looks = side.runs.back().run.looks_up_to;  // also of those from before, which are looked at too
    looks = std::max<std::int64_t>(looks, question_.max_repeats);
  }
}

// The verdicts of a ladder hold together, so its other runs are judged as well.
void SpeedupConfirmation::load_others() {
  std::vector<Run> others = store_.runs_of(*base_.asked.ladder);
  std::erase_if(others, [&](const Run& run) {
    const bool is_side = run.rung == base_.asked.rung || run.rung == run_.asked.rung;
    return !is_over(run.status) || (is_side && run.status == RunStatus::finished);
  });
  const std::int64_t most_steps =
      most_steps_of_each(others.size() + 2 * static_cast<std::size_t>(question_.max_repeats));
  for (const Run& run : others) others_.push_back(load_run(store_, run, most_steps));
}

// As the ladder judges the two rungs, or two runs apart.
PairJudgement SpeedupConfirmation::judged_pair() const {
  const JudgementOptions options{.noise_floor = question_.noise_floor};
  if (!is_in_one_ladder_) {
    const std::vector<Subject> sides{{.runs = measured(base_.runs)}, {.runs = measured(run_.runs)}};
    const std::vector<RungJudgement> judged = judge(sides, 0, hardware_, options);
    return {judged[1].over_baseline, judged[0], judged[1]};
  }
  std::vector<MeasuredRun> all;
  for (const std::vector<LoadedRun>* runs : {&base_.runs, &run_.runs, &others_})
    std::ranges::move(measured(*runs), std::back_inserter(all));
  return judge_pair(all, base_.asked.rung, run_.asked.rung, hardware_, options);
}

void SpeedupConfirmation::judge_runs() {
  const PairJudgement judged = judged_pair();
  needed_run_seconds_ = judged.base.run_seconds + judged.rung.run_seconds;
  const Gain& gain = judged.gain;
  arithmetic_ = gain.verdict;
  answer_ = {
      .speedup = gain, .repeats = std::min(judged.base.count.counted(), judged.rung.count.counted()), .reason = {}};
  left_out_ = judged.base.count.disturbed + judged.rung.count.disturbed;
  // More repeats here don't bring the two sides together.
  const auto elsewhere = std::ranges::find(judged.rung.flags, FlagId::other_machine, &Flag::id);
  is_only_busy_ = elsewhere == judged.rung.flags.end() && is_doubted_only_for(FlagId::busy_machine, judged.base) &&
                  is_doubted_only_for(FlagId::busy_machine, judged.rung);
  doubt_.clear();
  if (const Trust trust = gain.worst(); trust != Trust::trusted) {
    answer_.speedup.verdict = Verdict::cannot_tell;
    const bool is_run = judged.rung.trust == trust;
    const Flag* flag = reason_for(trust, is_run ? judged.rung : judged.base);
    if (!flag && elsewhere != judged.rung.flags.end())
      doubt_ = elsewhere->why;
    else
      doubt_ = "The throughput of " + (is_run ? run_ : base_).asked.name + " is " + std::string(to_string(trust)) +
               (flag ? ": " + flag->why : ".");
  }
  if (question_.metric) judge_values();
  estimates_.push_back(answer_.speedup);
}

// Replaces the verdict on the speed by that on the metric, which other programs don't disturb.
void SpeedupConfirmation::judge_values() {
  const FigureTable figures = store_.metrics().table({*question_.metric});
  // One value for each seed: runs with one seed are copies.
  const auto by_seed = [&](const Side& side) {
    std::map<std::uint64_t, double> values;
    for (const LoadedRun& run : side.runs) {
      const std::uint64_t seed = recipe_from_json(run.run.recipe).seed;
      next_seed_ = std::max(next_seed_, seed + 1);
      const double value = figures.value(run.run.id, *question_.metric);
      if (is_missing(value)) throw RecipeError(number_of(run.run), "has no " + name_of(*question_.metric));
      values.emplace(seed, value);
    }
    return values;
  };
  std::vector<double> base, run;
  const std::map<std::uint64_t, double> of_run = by_seed(run_);
  for (const auto& [seed, value] : by_seed(base_)) {
    const auto same_seed = of_run.find(seed);
    if (same_seed == of_run.end()) continue;
    base.push_back(value);
    run.push_back(same_seed->second);
  }
  const MetricRules rules{.direction = question_.direction, .noise_floor = question_.noise_floor, .looks = looks_};
  answer_.metric = judge_metric(base, run, rules);
  answer_.repeats = static_cast<int>(answer_.metric.runs);
  answer_.speedup.trust = answer_.speedup.base_trust = Trust::trusted;
  is_only_busy_ = false;
  answer_.speedup.needed_runs = answer_.metric.needed_runs;
  arithmetic_ = answer_.metric.verdict == MetricVerdict::better  ? Verdict::faster
                : answer_.metric.verdict == MetricVerdict::worse ? Verdict::slower
                : answer_.metric.verdict == MetricVerdict::same  ? Verdict::same
                                                                 : Verdict::cannot_tell;
  left_out_ = 0;
  const auto losses = [](const Side& side) { return LossRun{&side.runs.front().run, &side.runs.front().series}; };
  doubt_ = metric_doubt(name_of(*question_.metric), losses(base_), losses(run_));
  if (!doubt_.empty()) {
    answer_.speedup.trust = Trust::doubtful;
    answer_.metric.verdict = MetricVerdict::cannot_tell;
    arithmetic_ = Verdict::cannot_tell;
    doubt_ = "Nothing follows from the difference: " + doubt_ + ".";
  }
  answer_.speedup.verdict = arithmetic_;
}

void SpeedupConfirmation::decide() {
  const bool is_trusted = answer_.speedup.worst() == Trust::trusted;
  const auto tried =
      question_.metric ? answer_.repeats : static_cast<int>(std::min(base_.runs.size(), run_.runs.size()));
  const bool may_go_on = tried < question_.max_repeats;
  const bool is_a_look = looks_.is_at(static_cast<std::size_t>(answer_.repeats)) || !may_go_on;
  const bool is_clear = arithmetic_ != Verdict::cannot_tell && answer_.repeats >= 2 && is_a_look;
  const std::string left_out =
      left_out_ == 0 ? "" : fmt::format(" Left out: {} that other programs disturbed.", left_out_);
  // Any other flag of a repeat stays, even after more repeats.
  if (!is_trusted && !(is_only_busy_ && may_go_on)) {
    end(State::answered, doubt_);
  } else if (is_trusted && is_clear) {
    end(State::answered, "The verdict is clear after " + plural(answer_.repeats, "run") + " each" + "." + left_out);
  } else if (!may_go_on || (is_trusted && is_a_look && is_futile())) {
    answer_.speedup.verdict = Verdict::cannot_tell;
    const std::int64_t needed = answer_.speedup.needed_runs;
    end(State::answered,
        "Still inconclusive after " + plural(answer_.repeats, "run") + " each" + ". " +
            needed_text(needed, static_cast<double>(needed) * needed_run_seconds_, question_.noise_floor) + left_out);
  } else {
    begin_round();
  }
}

// True if, at the noise seen, even three times as many repeats as are allowed wouldn't be enough.
bool SpeedupConfirmation::is_futile() const {
  const std::int64_t needed = answer_.speedup.needed_runs;
  const bool has_interval = question_.metric ? answer_.metric.ci95.known() : answer_.speedup.ci95.known();
  return arithmetic_ == Verdict::cannot_tell && answer_.repeats >= fewest_before_giving_up &&
         ((needed == 0 && has_interval) || answer_.repeats + needed > 3 * std::int64_t{question_.max_repeats});
}

void SpeedupConfirmation::begin_round() {
  std::vector<Side*> order{&base_, &run_};
  std::shuffle(order.begin(), order.end(), random_);  // so that neither side always runs on the warmer machine
  round_.clear();
  for (Side* side : order) {
    round_.push_back(repeat_(side->runs.front().run.id, question_.metric
                                                            ? Repeats{.seed = next_seed_}
                                                            : Repeats{.looks_up_to = question_.max_repeats}));
    side->repeated.push_back(round_.back());
  }
  ++next_seed_;
}

void SpeedupConfirmation::end(State state, const std::string& reason) {
  if (!is_open()) return;
  state_ = state;
  if (state != State::answered && !estimates_.empty())
    answer_.speedup.verdict = estimates_.back().verdict = Verdict::cannot_tell;
  answer_.reason = reason;
}

}  // namespace stepladder
