#include "app/runs/loaded_runs.h"

#include <map>

#include "app/host/environment.h"
#include "app/runs/excerpt.h"
#include "storage/analysis/compare.h"
#include "storage/analysis/judgement.h"

namespace stepladder {

LoadedRun load_run(RunStore& store, const Run& run, std::int64_t most_steps) {
  LoadedRun loaded{
      .run = run, .summary = store.summary(run), .series = {}, .profile = {}, .parts = {}, .overviews = {}};
  const bool is_whole = loaded.summary.steps <= most_steps;
  loaded.series = is_whole ? store.series(run.id) : store.excerpt(run.id, excerpt_of(most_steps));
  return loaded;
}

std::vector<LoadedRun> load_runs(RunStore& store, const std::vector<Run>& runs) {
  const std::int64_t most_steps = most_steps_of_each(runs.size());
  std::vector<LoadedRun> loaded;
  loaded.reserve(runs.size());
  for (const Run& run : runs) {
    LoadedRun& last = loaded.emplace_back(load_run(store, run, most_steps));
    last.profile = store.recordings().profile(run.id);
    last.parts = store.recordings().mean_parts(run, last.summary.warmup_steps);
    if (!last.is_excerpt()) continue;
    for (const Quantity quantity : {Quantity::loss, Quantity::val_loss, Quantity::dt_ms})
      last.overviews.push_back(store.overview(run.id, quantity));
  }
  return loaded;
}

std::vector<MeasuredRun> measured(const std::vector<LoadedRun>& runs) {
  std::vector<MeasuredRun> pointers;
  for (const LoadedRun& run : runs) pointers.push_back(run.measured());
  return pointers;
}

namespace {

std::map<RunId, double> factors_of(const std::vector<RunAndSummary>& all) {
  std::map<LadderId, std::vector<RunWithSummary>> ladders;
  for (const RunAndSummary& each : all)
    if (each.run.ladder) ladders[*each.run.ladder].emplace_back(&each.run, &each.summary);
  std::map<RunId, double> factors;
  for (const auto& [ladder, runs] : ladders) {
    const Summary base = baseline_speed(runs);
    for (const auto& [run, summary] : runs) factors[run->id] = speedup(base, *summary);
  }
  return factors;
}

}  // namespace

RunContext load_run_context(RunStore* store) {
  RunContext context;
  context.hardware = HardwareTable::load(assets_folder());
  if (!store) return context;
  context.curations = store->curation().all();
  for (const Run& run : store->processes().runs_under_way())
    if (store->processes().is_paused(run.id)) context.paused.insert(run.id);
  const std::vector<RunAndSummary> all = store->runs_with_kept_summaries();
  for (const RunAndSummary& each : all) context.repeats.add(each.run);
  context.hardware.spreads.learn_from(all);
  context.factor = [factors = factors_of(all)](RunId run) {
    const auto found = factors.find(run);
    return found == factors.end() ? missing : found->second;
  };
  return context;
}

std::vector<Run> other_finished_repeats(RunStore& store, const Run& run) {
  if (!run.ladder) return {};
  std::vector<Run> repeats = store.runs_of(*run.ladder);
  std::erase_if(repeats, [&](const Run& other) {
    return other.rung != run.rung || other.id == run.id || other.status != RunStatus::finished;
  });
  return repeats;
}

}  // namespace stepladder
