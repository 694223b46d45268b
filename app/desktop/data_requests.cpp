// Reads what views lack between two frames. Curves are read on another thread, since there may be thousands.
#include "app/desktop/data_requests.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "app/desktop/desktop_state.h"
#include "app/desktop/workspace/advice_view.h"
#include "app/desktop/workspace/launch_state.h"
#include "app/host/environment.h"
#include "app/launch/recipe_fields.h"
#include "app/profile/predict.h"
#include "app/runs/excerpt.h"
#include "app/runs/loaded_runs.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"
#include "engine/stage.h"
#include "storage/errors.h"

namespace stepladder {
namespace {

// Reading steps may take this long between two frames; the rest is read after later frames.
constexpr std::chrono::milliseconds reading_time{30};

// "In this order they buy at most 1.70 x: compile, flash-attention. ..."
std::string sentence_of(const PredictionOverview& overview) {
  if (overview.order.size() < 2) return overview.sentence;
  std::string stages = overview.order.back().stage;
  for (std::size_t at = stages.find('+'); at != std::string::npos; at = stages.find('+', at))
    stages.replace(at, 1, ", ");
  return "One after the other " + stages + " buy " + gain_text(overview.order.back().step) + "." +
         (overview.sentence.empty() ? "" : " " + overview.sentence);
}

// The gains of the stages by the newest trace of the run. Of a step of very many slices nothing is predicted here: the
// next frame waits.
void load_predictions(RunStore& store, AdviceRun& run, const Workspace& workspace, AdviceView& into) {
  std::optional<TraceId> newest;
  for (const StoredTrace& each : store.traces().list())
    if (each.run == run.run->id) newest = each.id;
  const std::int64_t slices = newest ? kept_slices(store, *newest) : 0;
  run.has_trace = slices > 0;
  if (slices == 0 || slices > most_slices_to_wait_for) return;
  const PredictionSubject subject = load_subject(store, store.traces().find(*newest).value());
  const DeviceReport* const report = workspace.device ? &*workspace.device : nullptr;
  const PredictionOverview overview = predict_all(subject, report);
  into.notes = subject.notes;
  if (const std::string all = sentence_of(overview); !all.empty()) into.notes.insert(into.notes.begin(), all);
  for (const PredictionAnswer& each : overview.stages) run.predicted.push_back({each.stage, each.step});
  for (const auto& [kind, factor] : advised_kinds) {
    const WorkChange change{.kinds = {kind}, .factor = factor, .at_most = true};
    run.kinds.push_back({kind, factor, predict(subject, {.scales = {change}}, report).step});
  }
}

// Of a run that was launched here, since only its recipe can be launched with one stage more.
void name_unavailable(AdviceView& view, const Workspace& workspace) {
  const RunEntry* about = workspace.find(view.about);
  if (!about || about->run.source != "launched" || !workspace.device) return;
  const Recipe recipe = recipe_from_json(about->run.recipe);
  for (const Advice& advice : view.list) {
    if (advice.stage.empty()) continue;
    const std::string why =
        stage_by_id(advice.stage).unavailable(recipe, *workspace.device, about->run.device).worded(label_of);
    if (!why.empty()) view.unavailable[advice.stage] = why;
  }
  std::erase_if(view.list, [&](const Advice& advice) {
    return advice.kind == AdviceKind::open && view.unavailable.contains(advice.stage);
  });
}

// Reads the steps of ladders that may speak about the run, so that they can be judged: its own, and the newest others
// of its hardware.
void read_ladders(RunStore& store, const Run& about, std::vector<AdviceRun>& project, std::deque<Series>& kept) {
  constexpr std::size_t most_runs = 100;  // beside those of its own ladder
  std::map<LadderId, std::vector<AdviceRun*>, std::greater<>> ladders;
  for (AdviceRun& run : project)
    if (run.run->ladder && run.run->hardware == about.hardware) ladders[*run.run->ladder].push_back(&run);
  std::size_t read = 0;
  for (const auto& [ladder, runs] : ladders) {
    if (ladder != about.ladder && (read + runs.size() > most_runs || runs.size() < 2)) continue;
    read += ladder == about.ladder ? 0 : runs.size();
    for (AdviceRun* run : runs)
      run->series = &kept.emplace_back(load_run(store, *run->run, most_steps_of_each(runs.size())).series);
  }
}

// Reads the parts of a step only for runs that were trained here, and only for the newest.
void load_advice(RunStore& store, Workspace& workspace, RunId about) {
  constexpr std::size_t most_read = 100;
  std::vector<AdviceRun> project;
  std::size_t read = 0;
  for (auto entry = workspace.runs().rbegin(); entry != workspace.runs().rend(); ++entry) {
    if (!is_over(entry->run.status)) continue;
    AdviceRun run{.run = &entry->run, .summary = &entry->summary};
    const bool wanted = entry->run.id == about || (entry->run.source == "launched" && read++ < most_read);
    if (wanted) run.parts = store.recordings().mean_parts(entry->run, entry->summary.warmup_steps);
    project.push_back(run);
  }
  std::ranges::reverse(project);
  std::deque<Series> kept;
  if (const RunEntry* entry = workspace.find(about)) read_ladders(store, entry->run, project, kept);
  const Overview loss = store.overview(about, Quantity::loss);
  AdviceView made{.about = about, .made_for = workspace.version};
  for (AdviceRun& run : project) {
    if (run.run->id != about) continue;
    run.loss = &loss;
    run.timed = store.recordings().profile(about);
    made.times = fit_to_step(run.timed, run.parts, run.summary->dt_ms_median);
    load_predictions(store, run, workspace, made);
    made.has_trace = run.has_trace;
  }
  made.list = advise(project, about, workspace.hardware, known_stages(), true);
  name_unavailable(made, workspace);
  made.past = past_predictions(store);
  *workspace.advice = std::move(made);
}

void load_resumable(RunStore& store, Workspace& workspace) {
  std::vector<ResumableRun>& resumable = workspace.launch->resumable;
  resumable.clear();
  for (const RunId id : runs_with_checkpoint_folders(store.file())) {
    const RunEntry* entry = workspace.find(id);
    if (!entry || !is_over(entry->run.status)) continue;
    const std::vector<Checkpoint> saved = run_checkpoints(checkpoint_owner(store.file(), entry->run));
    if (!saved.empty()) resumable.push_back({id, saved.back().step});
  }
  std::ranges::sort(resumable, std::greater{}, &ResumableRun::run);
}

// Has every curve that a chart lacks read. Returns whether any was read since the last call.
bool read_curves(DesktopState& desktop, const std::vector<DataRequests::Curve>& curves) {
  std::vector<CurveWanted> wanted;
  for (const auto& [run, quantity, zoom] : curves) wanted.push_back(desktop.workspace.wanted(run, quantity, zoom));
  const std::vector<CurveWanted> late = desktop.workspace.late_steps();
  wanted.insert(wanted.end(), late.begin(), late.end());
  desktop.curves.want(wanted);
  // Short ones appear in the next frame.
  return take_curves(desktop, wanted.empty() ? std::chrono::milliseconds(0) : desktop.workspace.patience);
}

}  // namespace

bool take_curves(DesktopState& desktop, std::chrono::milliseconds patience) {
  const std::vector<CurveRead> read = desktop.curves.take(patience);
  for (const CurveRead& each : read) {
    desktop.workspace.keep(each);
    // Charts ask in every frame.
    if (!each.problem.empty() && desktop.messages.empty()) desktop.messages.show_error(each.problem);
  }
  return !read.empty();
}

bool read_requested(DesktopState& desktop, const DataRequests& asked) {
  RunStore& store = desktop.store;
  Workspace& workspace = desktop.workspace;
  const auto end = std::chrono::steady_clock::now() + reading_time;
  const auto read = [&](auto&& load) {
    try {
      load();
    } catch (const std::exception& error) {  // StorageError
      desktop.messages.show_error(error_text(error));
    }
  };
  const auto read_in_time = [&](const auto& all, auto&& load) {
    for (const auto& each : all)
      if (std::chrono::steady_clock::now() <= end) read([&] { load(each); });
  };
  desktop.tries_asked = asked.tries;
  if (asked.figures) workspace.wanted_figures = *asked.figures;
  read_in_time(asked.series, [&](RunId run) { workspace.load_series(store, run); });
  read_in_time(asked.excerpts, [&](const auto& excerpt) { workspace.load_excerpt(store, excerpt.run, excerpt.most); });
  read_in_time(asked.metrics, [&](RunId run) { workspace.load_metrics(store, run); });
  for (const RunId run : asked.details) read([&] { workspace.load_detail(store, run); });
  if (!asked.details.empty()) workspace.environment = environment_json();
  if (asked.advice) read([&] { load_advice(store, workspace, *asked.advice); });
  if (asked.bin) read([&] { workspace.load_bin(store); });
  if (asked.resumable) read([&] { load_resumable(store, workspace); });
  return read_curves(desktop, asked.curves) || asked.reads();
}

}  // namespace stepladder
