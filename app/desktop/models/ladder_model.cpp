// Derives the Ladder view's rows, loss curves and ECDFs on another thread from snapshots of the runs (`model_of`).
// `update` asks for missing data in every frame and starts again only if runs, options or data have changed. Judgements
// are storage/analysis/judgement.h's.
#include "app/desktop/models/ladder_model.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "app/text/format.h"
#include "app/text/short_names.h"
#include "app/text/verdict_text.h"
#include "engine/stage.h"

namespace stepladder {
namespace {

constexpr std::size_t ecdf_points = 400;

Ecdf ecdf_of(const Series& series, const Summary& summary) {
  std::vector<double> values = steady_dt_ms(series, summary);
  std::ranges::sort(values);
  Ecdf ecdf;
  const std::size_t points = std::min(values.size(), ecdf_points);
  for (std::size_t k = 0; k < points; ++k) {
    const std::size_t i = points == 1 ? 0 : k * (values.size() - 1) / (points - 1);
    ecdf.dt_ms.push_back(values[i]);
    ecdf.share.push_back(static_cast<double>(i + 1) / static_cast<double>(values.size()));
  }
  return ecdf;
}

Axis axis_of(ComparisonAxis comparison_axis) {
  return by_enum<ComparisonAxis>(Axis::step, Axis::tokens, Axis::time, Axis::flops, Axis::time)[comparison_axis];
}

// The inputs of a model, for another thread.
struct LadderInput {
  LadderId ladder = 0;
  int baseline = 0;
  ComparisonAxis comparison_axis = ComparisonAxis::steps;
  HardwareTable hardware;
  std::int64_t binned_runs = 0;
  std::vector<RunSnapshot> runs;                    // by rung, then repeat
  std::vector<std::vector<SystemMetrics>> metrics;  // of each
  std::vector<StepProfile> profiles;                // of each
};

// The loss along the comparison axis.
LossCurve loss_curve(const RunSnapshot& run, const Energy& energy, ComparisonAxis comparison_axis) {
  LossCurve curve{.run = run.run.id, .rung = run.run.rung, .repeat = run.run.repeat, .title = title_of(run.run)};
  if (comparison_axis == ComparisonAxis::energy && is_missing(energy.mean_power_w)) return curve;
  const Axis axis = axis_of(comparison_axis);
  // Seconds to joules.
  const auto as_energy = [&](std::vector<double>& seconds) {
    if (comparison_axis == ComparisonAxis::energy)
      for (double& x : seconds) x *= energy.mean_power_w;
  };
  if (!run.is_excerpt) {
    curve.points = points_of(run.run, *run.series, Quantity::loss, axis);
    as_energy(curve.points.x);
  } else if (const OverviewCurve* coarse = run.overview(Quantity::loss)) {
    curve.places = run.places(axis);
    as_energy(curve.places.y);
    curve.behind = coarse->behind();
    MeanCurve means = axis == Axis::step ? coarse->means : placed(coarse->means, curve.places);
    curve.points = std::move(means.mean);
    curve.low = std::move(means.low);
    curve.high = std::move(means.high);
    if (coarse->means.mean.empty())  // the values themselves
      curve.points = axis == Axis::step ? coarse->points : placed(coarse->points, curve.places);
  }
  curve.levels.follow(curve.points.x, curve.points.y);
  return curve;
}

using RunsOfRung = std::vector<std::pair<const Run*, const Summary*>>;

// The run that stands for a rung: a finished one that others didn't disturb, if there is one, else the running one,
// else the first.
const Run& shown_run(const RunsOfRung& runs) {
  const auto running =
      std::ranges::find_if(runs, [](const auto& of) { return of.first->status == RunStatus::running; });
  const Run& reference = baseline_of(runs);
  return reference.status == RunStatus::queued && running != runs.end() ? *running->first : reference;
}

// "Repeat 2 of 3 is at step 12 of 60, 1 more is queued."
void take_progress(LadderRung& rung, std::span<const Run* const> runs, std::int64_t steps) {
  const auto running = std::ranges::find(runs, RunStatus::running, &Run::status);
  const auto queued = std::ranges::count(runs, RunStatus::queued, &Run::status);
  if (running == runs.end() && queued == 0) return;
  const bool is_alone = runs.size() == 1;
  std::string text;
  if (running != runs.end()) {
    rung.progress = "step " + grouped(steps) +
                    ((*running)->planned_steps > 0 ? " of " + grouped((*running)->planned_steps) : std::string());
    text = (is_alone ? std::string("It")
                     : "Repeat " + std::to_string((*running)->repeat + 1) + " of " + std::to_string(runs.size())) +
           " is at " + rung.progress;
    if (queued > 0) text += ", " + std::to_string(queued) + " more " + (queued == 1 ? "is" : "are") + " queued";
  } else {
    text = is_alone ? "Queued" : std::to_string(queued) + " of " + plural(std::ssize(runs), "repeat") + " queued";
  }
  if (rung.judged.is_under_way && running != runs.end()) text += ": the numbers are of its steps so far";
  rung.under_way = text + ".";
}

// `steps` are those of the running repeat.
LadderRung row_of(RungJudgement judged, const Run& shown, const Summary& summary, std::int64_t steps) {
  LadderRung rung;
  rung.first = shown;
  rung.stage = known_stage(rung.first, known_stages());
  rung.summary = summary;
  rung.has_finished_run = rung.first.status == RunStatus::finished;
  const std::vector<const Run*> runs = std::exchange(judged.runs, {});  // the caller's
  rung.judged = std::move(judged);
  take_progress(rung, runs, steps);
  return rung;
}

std::string answer_of(const LadderModel& model, std::int64_t binned_runs) {
  std::vector<AnsweredRung> rungs;
  for (const LadderRung& rung : model.rungs) rungs.push_back({title_of(rung.first), &rung.judged});
  return answer_text(rungs, binned_runs);
}

void name_rungs(std::vector<LadderRung>& rungs) {
  constexpr std::size_t longest = 24;  // letters, that a narrow table has room for
  std::vector<std::string> titles;
  for (const LadderRung& rung : rungs) titles.push_back(title_of(rung.first));
  const bool is_any_long = std::ranges::any_of(titles, [](const std::string& title) { return title.size() > longest; });
  const std::string beginning = is_any_long ? common_beginning(titles, titles.size() / 2 + 1) : "";
  for (std::size_t i = 0; i < rungs.size(); ++i) rungs[i].name = without_beginning(titles[i], beginning);
}

LadderModel model_of(const LadderInput& input) {
  LadderModel model{.ladder = input.ladder, .baseline = input.baseline, .comparison_axis = input.comparison_axis};
  const std::vector<RunSnapshot>& runs = input.runs;
  model.is_over = std::ranges::none_of(runs, &RunSnapshot::is_active);
  if (runs.empty()) return model;
  model.loss_floor = runs.front().run.loss_floor;

  std::vector<Summary> summaries;
  summaries.reserve(runs.size());
  std::vector<MeasuredRun> measured;
  std::map<RunId, std::size_t> place;
  std::map<RunId, Energy> energies;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Summary& summary = summaries.emplace_back(runs[i].summary());
    const Series& series = *runs[i].series;
    place[runs[i].run.id] = i;
    measured.push_back({&runs[i].run, &summary, &series, &input.profiles[i]});
    model.ecdf[runs[i].run.id] = ecdf_of(series, summary);
    if (input.metrics[i].empty()) continue;
    const auto warm = static_cast<std::size_t>(summary.warmup_steps);
    const std::int64_t last_warm = warm > 0 && warm <= series.size() ? series.step[warm - 1] : 0;
    energies[runs[i].run.id] = energy_of(input.metrics[i], last_warm, summary.tokens_per_s);
  }
  const LadderRung* base = nullptr;
  std::vector<RungJudgement> judged = judge_rungs(measured, input.hardware, input.baseline);
  model.rungs.reserve(judged.size());
  for (RungJudgement& each : judged) {
    RunsOfRung repeats;
    for (const Run* run : each.runs) repeats.emplace_back(run, &summaries[place[run->id]]);
    const Run& first = shown_run(repeats);
    const auto running = std::ranges::find(each.runs, RunStatus::running, &Run::status);
    const std::int64_t steps = running == each.runs.end() ? 0 : summaries[place[(*running)->id]].steps;
    LadderRung& rung = model.rungs.emplace_back(row_of(std::move(each), first, summaries[place[first.id]], steps));
    model.impossible += rung.judged.trust == Trust::impossible ? 1 : 0;
    if (const auto energy = energies.find(first.id); energy != energies.end()) rung.energy = energy->second;
    if (model.rungs.size() > 1) {
      const LadderRung& before = model.rungs[model.rungs.size() - 2];
      rung.setup_pays_back_after =
          break_even_steps(rung.first.setup_ms, before.summary.dt_ms_median, rung.summary.dt_ms_median);
    }
    if (rung.judged.rung == input.baseline || (!base && model.rungs.size() == 1)) base = &rung;
  }

  name_rungs(model.rungs);
  model.answer = answer_of(model, input.binned_runs);

  std::size_t reference = runs.size();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    model.losses.push_back(loss_curve(runs[i], energies[runs[i].run.id], input.comparison_axis));
    if (base && runs[i].run.id == base->first.id && !model.losses[i].points.empty()) reference = i;
  }
  for (std::size_t i = 0; reference < runs.size() && i < runs.size(); ++i) {
    if (i == reference) continue;
    LossCurve& curve = model.losses[i];
    curve.gap = difference(curve.points, model.losses[reference].points);
    curve.gap_levels.follow(curve.gap.x, curve.gap.y);
  }
  return model;
}

}  // namespace

std::string_view title_of(ComparisonAxis comparison_axis) {
  return by_enum<ComparisonAxis>("equal steps", "equal tokens", "equal time", "equal FLOPs",
                                 "equal energy")[comparison_axis];
}

std::string_view axis_title_of(ComparisonAxis comparison_axis) {
  return by_enum<ComparisonAxis>("step", "tokens", "training time, s", "FLOPs (6N)", "energy, J")[comparison_axis];
}

std::string title_of(const Run& rung) {
  return !rung.title.empty() ? rung.title : !rung.stage.empty() ? rung.stage : "Rung " + std::to_string(rung.rung);
}

const LadderRung* LadderModel::rung(int number) const {
  const auto found = std::ranges::find_if(rungs, [&](const LadderRung& r) { return r.judged.rung == number; });
  return found == rungs.end() ? nullptr : &*found;
}

int LadderModel::colour_of(int number) const {
  const LadderRung* found = rung(number);
  return found ? found->colour : number;
}

int LadderModel::fastest() const {
  const LadderRung* best = nullptr;
  for (const LadderRung& rung : rungs) {
    if (is_missing(rung.judged.tokens_per_s)) continue;
    // One under way has the speed of its first steps alone.
    const auto place = [](const LadderRung& each) {
      return std::tuple(!each.judged.is_under_way, each.trusted(), each.judged.tokens_per_s);
    };
    if (!best || place(rung) > place(*best)) best = &rung;
  }
  return best ? best->judged.rung : rungs.empty() ? 0 : rungs.front().judged.rung;
}

bool LadderViewModel::update(const Workspace& workspace, LadderId ladder, int baseline, ComparisonAxis comparison_axis,
                             const SharedX* zoom, DataRequests& requests) {
  std::vector<const RunEntry*> runs = workspace.runs_of(ladder);
  if (const auto kept = workspace.kept_tries.find(ladder); kept != workspace.kept_tries.end())
    std::erase_if(runs, [&](const RunEntry* entry) { return !kept->second.contains(entry->run.rung); });
  snapshots_.expect(runs.size());
  Basis basis{.asked = {ladder, baseline, static_cast<std::int64_t>(comparison_axis),
                        static_cast<std::int64_t>(workspace.version)},
              .data = {}};
  std::map<RunId, RunPoints> coarse;
  const std::size_t asked_before = requests.size();
  bool is_growing = false;
  for (const RunEntry* entry : runs) {
    is_growing = is_growing || entry->is_active();
    basis.asked.insert(basis.asked.end(), {entry->run.id, entry->is_active()});
    basis.data.insert(basis.data.end(), {fingerprint(*entry), workspace.detail(entry->run.id) != nullptr});
    if (!snapshots_.is_coarse(*entry)) continue;
    const auto known = std::ranges::find(model.losses, entry->run.id, &LossCurve::run);
    std::optional<SharedX> sight;
    if (zoom && zoom->zoomed() && known != model.losses.end() && model.comparison_axis == comparison_axis)
      sight = steps_in_sight(*zoom, known->places);
    const RunPoints points =
        run_points(workspace, *entry, Quantity::loss, sight ? &*sight : nullptr, requests, Reads::overview);
    basis.data.push_back(fingerprint(points));
    coarse[entry->run.id] = points;
    if (axis_of(comparison_axis) != Axis::time) continue;
    const auto times = workspace.overview(entry->run.id, Quantity::dt_ms);
    if (!times) requests.curves.push_back({entry->run.id, Quantity::dt_ms});
    basis.data.push_back(times != nullptr);
  }
  const std::size_t asked_for_curves = requests.size();
  for (const RunEntry* entry : runs) snapshots_.ask(*entry, requests);
  is_growing = is_growing || requests.size() > asked_before;
  // Runs without their steps would be judged as runs that have none. What can't be read is shown without them.
  const std::size_t unread = requests.size() - asked_for_curves;
  const bool waits = unread > 0 && unread != std::exchange(unread_, unread);
  if (unread == 0) unread_ = 0;
  basis.asked.push_back(unread == 0);
  bool made = job_.take(model, std::chrono::milliseconds(0));
  if (!waits && job_.is_stale(basis, is_growing)) {
    LadderInput input{
        .ladder = ladder, .baseline = baseline, .comparison_axis = comparison_axis, .hardware = workspace.hardware};
    for (const Ladder& each : workspace.ladders())
      if (each.id == ladder) input.binned_runs = each.binned_runs;
    for (const RunEntry* entry : runs) {
      const RunDetail* detail = workspace.detail(entry->run.id);
      RunSnapshot& run = input.runs.emplace_back(snapshots_.of(*entry));
      if (run.is_excerpt) {
        if (const auto& shown = coarse[entry->run.id].overview) run.overviews.push_back(shown);
        run.step_times = workspace.overview(entry->run.id, Quantity::dt_ms);
      }
      input.metrics.push_back(detail ? detail->metrics : std::vector<SystemMetrics>{});
      input.profiles.push_back(detail ? detail->profile : StepProfile{});
    }
    job_.start(std::move(basis), [input = std::move(input)](JobControl&) { return model_of(input); });
    made = job_.take(model, workspace.patience) || made;
  }
  for (LadderRung& rung : model.rungs) rung.colour = workspace.colour_of(rung.first);
  if (job_.is_pending()) requests.next_frame = true;
  return made;
}

}  // namespace stepladder
