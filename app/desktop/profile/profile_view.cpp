// Reads what the Profile view shows, on another thread through a connection of its own. A step's slices may be large
// and never change, so the last view's are used again; the trace's time of import tells whether a number is still the
// same trace.
#include "app/desktop/profile/profile_view.h"

#include <algorithm>
#include <map>

#include "app/host/environment.h"
#include "app/profile/difference_text.h"
#include "app/profile/predict.h"
#include "app/profile/roofline_report.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"
#include "engine/stage.h"
#include "storage/database/traces/trace_store.h"
#include "storage/traces/trace.h"

namespace stepladder {
namespace {

std::string detail_of(const StoredTrace& trace) {
  return "trace " + std::to_string(trace.id) + ", " + format_name(trace.format) + ", " +
         (trace.profile.on_gpu ? "GPU" : "CPU") +
         (trace.profile.ranks > 1 ? ", " + std::to_string(trace.profile.ranks) + " ranks" : "") + ", " +
         traced_calls_text(trace.profile);
}

// Traces first, each the newest first.
std::vector<ProfileSource> sources_of(RunStore& store) {
  std::vector<ProfileSource> sources;
  for (const StoredTrace& trace : store.traces().list()) {
    const std::optional<Run> run = trace.run ? store.run(*trace.run) : std::nullopt;
    sources.push_back({.side = {.kind = ProfileSide::Kind::trace, .id = trace.id},
                       .name = trace.name,
                       .detail = detail_of(trace),
                       .run = trace.run,
                       .has_slices = !store.traces().details().steps(trace.id).empty(),
                       .is_doubtful = !doubt_about(store, trace).empty(),
                       .facts = facts_of(trace, run ? &*run : nullptr)});
  }
  std::ranges::reverse(sources);
  std::vector<ProfileSource> runs;
  for (const RunId id : store.traces().details().timed_runs()) {
    const std::optional<Run> run = store.run(id);
    if (!run) continue;
    runs.push_back({.side = {.kind = ProfileSide::Kind::run, .id = id},
                    .name = run->name,
                    .detail = "operators timed here, run " + std::to_string(id),
                    .run = id,
                    .facts = facts_of(*run)});
  }
  sources.insert(sources.end(), runs.rbegin(), runs.rend());
  return sources;
}

void take_slices(ShownProfile& shown, RunStore& store) {
  TraceDetails details = store.traces().details();
  shown.anatomy = details.anatomy(shown.side.id);
  shown.steps = details.steps(shown.side.id);
  if (shown.steps.empty()) return;
  const auto is_of_rank = [&](const KeptStepName& each) { return each.rank == shown.side.rank; };
  if (std::ranges::none_of(shown.steps, is_of_rank)) shown.side.rank = shown.steps.front().rank;
  std::vector<KeptStepName> of_rank;
  std::copy_if(shown.steps.begin(), shown.steps.end(), std::back_inserter(of_rank), is_of_rank);
  const bool is_kept =
      std::ranges::any_of(of_rank, [&](const KeptStepName& each) { return each.step == shown.side.step; });
  // The middle one, which has the median time if only three of many are kept.
  if (!is_kept) shown.side.step = of_rank[of_rank.size() / 2].step;
  shown.slices = std::make_shared<StepSlices>(details.slices(shown.side.id, shown.side.rank, shown.side.step));
  shown.index = std::make_shared<SliceIndex>(*shown.slices);
  shown.sums = std::make_shared<RangeSums>(*shown.slices);
}

// Plays the shown step again with each kind of work at its ceiling. Steps of millions of slices would take too long.
void play_at_ceilings(ShownProfile& shown, const TraceProfile& profile) {
  constexpr std::int64_t most = 300'000;
  shown.gain_at_best.assign(all_operator_kinds.size(), missing);
  if (!shown.slices || slice_count(*shown.slices) > most) return;
  const PredictedSteps steps(profile, {*shown.slices});
  if (steps.empty()) return;
  for (const KindRoofline& each : shown.rooflines) {
    if (is_missing(each.share())) continue;  // then it has no ceiling to run at
    const double at_best = each.least_ms + each.ms - each.known_ms;
    const WorkChange faster{.kinds = {each.kind}, .factor = std::min(1.0, at_best / each.ms)};
    const double ratio = steps.length_ratios({&faster, 1}).front();
    if (ratio > 0) shown.gain_at_best[static_cast<std::size_t>(each.kind)] = 1 / ratio;
  }
}

// The stages that the run doesn't have; all of an unknown recipe.
std::vector<std::string> stages_without(const std::optional<Run>& run) {
  std::optional<Recipe> recipe;
  if (run && run->source == "launched") recipe = recipe_from_json(run->recipe);
  std::vector<std::string> ids;
  for (const Stage& stage : all_stages())
    if (stage.kind != StageKind::check && !(recipe && stage.is_on(*recipe))) ids.push_back(stage.id);
  return ids;
}

RunId launched_here(const std::optional<Run>& run) {
  return run && run->source == "launched" ? run->id : 0;
}

// Plays the kept steps again with each stage.
ShownNext next_of(RunStore& store, const StoredTrace& trace, const KindTimes& kinds, double step_ms) {
  const std::int64_t slices = kept_slices(store, trace.id);
  ShownNext next;
  if (slices == 0 || slices > most_slices_to_wait_for) {
    next.largest = largest_part_text(kinds, step_ms, trace.profile.on_gpu ? "cuda" : "cpu",
                                     stages_without(trace.run ? store.run(*trace.run) : std::nullopt));
    next.rest = slices == 0 ? "This trace keeps no slices, so no gain is predicted."
                            : "This trace has too many slices to predict gains while you wait.";
    return next;
  }
  const PredictionSubject subject = load_subject(store, trace);
  const PredictionOverview overview = predict_all(subject, nullptr);
  std::map<std::string, std::string> unknown;  // titles by reason
  for (const PredictionAnswer& each : overview.stages) {
    const std::string& title = stage_by_id(each.stage).title;
    if (std::string& titles = unknown[each.step.why_unknown]; !each.step.why_unknown.empty())
      titles += (titles.empty() ? "" : ", ") + title;
    else if (each.step.factor >= least_predicted_gain)
      next.stages.push_back({each.stage, title, step_text(each.step), gain_text(each.step),
                             each.rows.empty() ? "" : each.rows.front().why});
  }
  for (const auto& [why, titles] : unknown)
    if (!why.empty()) next.rest += (next.rest.empty() ? "" : " ") + titles + " can't be predicted: " + why + ".";
  for (const std::string& note : subject.notes) next.rest += (next.rest.empty() ? "" : " ") + note;
  next.largest = overview.largest;
  next.order = overview.sentence;
  return next;
}

// The same step of the same trace; null: it must be read.
const ShownProfile* known_side(const ProfileSide& side, const ProfileView* last, RunStore& store) {
  if (!last || side.kind != ProfileSide::Kind::trace) return nullptr;
  for (const std::optional<ShownProfile>* each : {&last->after, &last->before}) {
    if (!*each || (*each)->side.kind != side.kind || (*each)->side.id != side.id) continue;
    const bool is_same_step =
        ((*each)->side.rank == side.rank && (*each)->side.step == side.step) || (*each)->asked == side;
    // A number may have been given to another trace since then.
    if (is_same_step && store.traces().details().imported_at(side.id) == (*each)->imported_at) return &**each;
  }
  return nullptr;
}

// Its run may have changed.
void take_run(ShownProfile& shown, RunStore& store, const StoredTrace& trace) {
  shown.doubt = doubt_about(store, trace);
  shown.owner = trace.run ? TraceOwner{} : owner_of(store, trace);
  const std::optional<Run> run = trace.run ? store.run(*trace.run) : std::nullopt;
  shown.facts = facts_of(trace, run ? &*run : nullptr);
  shown.next.run = launched_here(run);
  shown.run = trace.run;
}

std::optional<ShownProfile> read_side(const ProfileSide& side, RunStore& store, const ProfileView* last) {
  if (const ShownProfile* known = known_side(side, last, store)) {
    const std::vector<StoredTrace> all = store.traces().list();
    const auto trace = std::ranges::find(all, side.id, &StoredTrace::id);
    // Another run's recipe, hardware and step time decide what the ceilings and What next say: it is read again.
    if (trace != all.end() && trace->run == known->run) {
      ShownProfile shown = *known;
      shown.asked = side;
      take_run(shown, store, *trace);
      return shown;
    }
  }
  ShownProfile shown{.side = side, .asked = side};
  if (side.kind == ProfileSide::Kind::trace) {
    std::optional<StoredTrace> trace = store.traces().find(side.id);
    if (!trace) return std::nullopt;
    shown.imported_at = trace->imported_at;
    shown.name = trace->name;
    shown.on_gpu = trace->profile.on_gpu;
    shown.has_steps = trace->profile.has_steps;
    shown.note = format_note(trace->format);
    shown.step_ms = mean_step_ms(trace->profile);
    shown.kinds = KindTimes(step_profile(*trace));
    const Ceiling ceiling = ceiling_of(store, *trace, "", "");
    shown.rooflines = rooflines(trace->profile, ceiling);
    shown.ceiling = ceiling_text(shown.rooflines, ceiling, 0);
    shown.peak = of_rank(ceiling, trace->profile);
    shown.ranks = rank_report(trace->profile);
    shown.spread = step_spread(trace->profile);
    take_slices(shown, store);
    play_at_ceilings(shown, trace->profile);
    shown.next = next_of(store, *trace, shown.kinds, shown.step_ms);
    take_run(shown, store, *trace);
    shown.operators = std::move(trace->profile.operators);
    shown.has_graphs = has_graphs(shown.operators);
  } else if (side.kind == ProfileSide::Kind::run) {
    const std::optional<Run> run = store.run(side.id);
    if (!run) return std::nullopt;
    shown.name = run->name;
    const Summary summary = store.summary(*run);
    const FittedProfile fitted =
        fit_to_step(store.recordings().profile(run->id), store.recordings().mean_parts(*run, summary.warmup_steps),
                    summary.dt_ms_median);
    const StepProfile& timed = fitted.profile;
    if (timed.steps == 0) return std::nullopt;
    shown.facts = facts_of(*run);
    shown.doubt = doubt_about(fitted.profiled_ms, fitted.measured_ms);
    shown.fit = fitted.is_comparable ? fit_text(fitted) : "";  // else `doubt` says it
    shown.is_scaled = fitted.is_comparable;
    shown.kinds = KindTimes(timed);
    shown.step_ms = step_ms(timed);
    shown.operators = traced(timed);
    shown.next = {.largest = largest_part_text(shown.kinds, shown.step_ms, run->device, stages_without(*run)),
                  .run = launched_here(run)};
  } else {
    return std::nullopt;
  }
  return shown;
}

std::optional<ShownPasses> read_passes(std::int64_t id, RunStore& store) {
  std::optional<StoredPasses> kept = store.traces().passes().find(id);
  if (!kept) return std::nullopt;
  ShownPasses shown{.rows = call_rows(*kept)};
  shown.table = rows_table(shown.rows);
  shown.sentences = sentences_of(*kept, shown.rows);
  shown.kept = std::move(*kept);
  return shown;
}

void take_passes(ProfileView& view, const ProfileQuestion& question, RunStore& store) {
  view.all_passes = store.traces().passes().list();
  std::ranges::reverse(view.all_passes);
  if (question.passes != 0) view.passes = read_passes(question.passes, store);
  if (!view.passes && !view.all_passes.empty()) view.passes = read_passes(view.all_passes.front().id, store);
  if (question.passes_before != 0) view.passes_before = read_passes(question.passes_before, store);
  if (!view.passes || !view.passes_before) return;
  view.compared_passes = compare_passes(view.passes_before->kept, view.passes->kept);
  view.compared_table = comparison_table(*view.compared_passes);
}

// The operators of all chosen profiles, if there are more than two.
void take_several(ProfileView& view, RunStore& store) {
  if (view.asked.others.empty() || !view.after) return;
  std::vector<std::vector<TracedOperator>> read;
  const auto take = [&](const std::string& name, std::vector<TracedOperator> operators) {
    view.several_names.push_back(name);
    read.push_back(std::move(operators));
  };
  if (view.before) take(view.before->name, view.before->operators);
  take(view.after->name, view.after->operators);
  for (const ProfileSide& side : view.asked.others) {
    if (side.kind == ProfileSide::Kind::trace) {
      if (std::optional<StoredTrace> trace = store.traces().find(side.id))
        take(trace->name, std::move(trace->profile.operators));
    } else if (std::optional<ShownProfile> run = read_side(side, store, nullptr)) {
      take(run->name, std::move(run->operators));
    }
  }
  const std::vector<std::span<const TracedOperator>> traces(read.begin(), read.end());
  view.several = beside_each_other(traces);
}

}  // namespace

ProfileView profile_view(const ProfileQuestion& question, RunStore& store, const ProfileView* last) {
  ProfileView view{.asked = question};
  try {
    view.sources = sources_of(store);
    take_passes(view, question, store);
    view.before = read_side(question.before, store, last);
    view.after = read_side(question.after, store, last);
    take_several(view, store);
  } catch (const std::exception& error) {  // StorageError: damaged slices, a locked file
    view.problem = error.what();
  }
  if (view.before && view.after) {
    view.difference =
        difference(view.before->operators, view.after->operators, {view.before->spread, view.after->spread});
    view.unlike = unlike_text(view.before->facts, view.after->facts, HardwareTable::load(assets_folder()));
  }
  return view;
}

bool ProfileReader::update(std::shared_ptr<const ProfileView>& into, RunStore& store,
                           std::chrono::milliseconds patience) {
  if (asked_ != started_ && !background_.is_pending()) {
    started_ = asked_;
    if (store.file().empty()) {  // in memory: tests
      into = std::make_shared<const ProfileView>(profile_view(wanted_, store));
      return true;
    }
    background_.start(
        {.asked = {started_}, .data = {}}, [question = wanted_, file = store.file(), last = into](JobControl&) {
          try {
            RunStore own = RunStore::open(file, RunStore::Mode::read_only);
            return std::make_shared<const ProfileView>(profile_view(question, own, last.get()));
          } catch (const std::exception& error) {  // StorageError: a file that nobody can open
            return std::make_shared<const ProfileView>(ProfileView{.asked = question, .problem = error.what()});
          }
        });
  }
  return background_.take(into, patience);
}

}  // namespace stepladder
