// Loads data from the project when a view asks for it.
#include <algorithm>
#include <utility>

#include "app/desktop/workspace.h"
#include "app/session/session.h"
#include "app/text/terminal_text.h"
#include "storage/analysis/mfu.h"

namespace stepladder {

void Workspace::load(RunStore& store) {
  ladders_ = store.ladders();
  kept_tries = store.tries().kept();
  left_out.clear();
  for (const Ladder& ladder : ladders_)
    if (ladder.source == "launched") left_out[ladder.id] = skipped_rungs(store, ladder);
  views = store.views().names();
  traces = store.traces().list();
  published_mfu = store.settings().get(published_setting).value_or("");
  const std::map<RunId, Curation> curations = store.curation().all();
  std::vector<RunEntry> before = std::exchange(runs_, {});
  std::map<RunId, std::size_t> old = std::exchange(index_, {});
  std::vector<RunAndSummary> all = store.runs_with_summaries();
  for (RunAndSummary& read : all) {
    const RunId id = read.run.id;
    index_[id] = runs_.size();
    RunEntry entry;
    if (const auto known = old.find(id); known != old.end()) {
      RunEntry& kept = before[known->second];
      const bool ours = is_ours(id);
      const bool followed = std::ranges::find(others_, id) != others_.end();
      if (ours || followed || (kept.loaded && static_cast<std::int64_t>(kept.series().size()) == read.summary.steps))
        entry = std::move(kept);
      if (ours) read = {entry.run, entry.summary};
    }
    entry.run = std::move(read.run);
    entry.summary = read.summary;
    const auto curation = curations.find(id);
    entry.curation = curation == curations.end() ? Curation{} : curation->second;
    runs_.push_back(std::move(entry));
  }
  ++curves_forgotten_;
  overviews_.clear();
  zoomed_overviews_.clear();
  metrics_.clear();
  for (const auto& each : details_) fit_profile(each.first);
  update_spreads();
  ++version;
  std::erase_if(selection.runs, [this](RunId id) { return !index_.contains(id); });
}

void Workspace::update_spreads() {
  std::vector<std::pair<const Run*, const Summary*>> all;
  for (const RunEntry& each : runs_) all.emplace_back(&each.run, &each.summary);
  hardware.spreads.learn_from(all);
}

void Workspace::load_series(RunStore& store, RunId run) {
  if (RunEntry* found = entry(run); found && !found->loaded) found->set_series(store.series(run));
}

void Workspace::load_excerpt(RunStore& store, RunId run, std::int64_t most) {
  if (RunEntry* found = entry(run); found && !found->excerpt)
    found->excerpt = std::make_shared<Series>(store.excerpt(run, most));
}

void Workspace::load_detail(RunStore& store, RunId id) {
  const RunEntry* found = find(id);
  if (!found) return;
  details_[id] = {.metrics = store.recordings().system_metrics(id),
                  .samples = store.recordings().samples(id),
                  .checkpoints = run_checkpoints(checkpoint_owner(store.file(), found->run)),
                  .parts = store.recordings().mean_parts(found->run, found->summary.warmup_steps),
                  .console = console_lines(store.recordings().console(id)),
                  .profile = store.recordings().profile(id)};
  fit_profile(id);
}

void Workspace::load_bin(RunStore& store) {
  if (std::exchange(bin_read_at_, version) == version) return;
  bin = runs_in_bin(store);
  std::ranges::reverse(bin);
}

void Workspace::load_metrics(RunStore& store, RunId id) {
  if (find(id)) metrics_[id] = store.metrics().names(id, most_listed_metrics);
}

const RunDetail* Workspace::detail(RunId id) const {
  const auto found = details_.find(id);
  return found == details_.end() ? nullptr : &found->second;
}

void Workspace::fit_profile(RunId id) {
  const auto detail = details_.find(id);
  const RunEntry* found = find(id);
  if (detail != details_.end() && found)
    detail->second.fitted = fit_to_step(detail->second.profile, detail->second.parts, found->summary.dt_ms_median);
}

const FittedProfile* Workspace::profile(RunId id) const {
  const RunDetail* found = detail(id);
  return found && found->profile.steps > 0 ? &found->fitted : nullptr;
}

}  // namespace stepladder
