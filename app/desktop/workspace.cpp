#include "app/desktop/workspace.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stepladder {
namespace {

// Mean wall time of a step, from the run's own clock: start to last step, so validation counts too.
double seconds_per_step(const RunEntry& entry) {
  const auto steps = static_cast<double>(entry.series().size());
  if (steps < 10 || is_missing(entry.last_step_at) || is_missing(entry.run.started_at)) return missing;
  return (entry.last_step_at - entry.run.started_at) / steps;
}

// Without escape sequences (ECMA-48: ESC [ ... a letter); each redraw of a bar is a line.
std::vector<std::string> lines_of(const std::string& printed) {
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t i = 0; i < printed.size(); ++i) {
    const char c = printed[i];
    if (c == '\x1b') {
      if (i + 1 < printed.size() && printed[i + 1] == '[') {
        i += 2;
        while (i < printed.size() && !(printed[i] >= '@' && printed[i] <= '~')) ++i;
      }
    } else if (c == '\n' || c == '\r') {
      if (!line.empty()) lines.push_back(std::exchange(line, {}));
    } else if (static_cast<unsigned char>(c) >= ' ' || c == '\t') {
      line += c;
    }
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

constexpr std::size_t overview_buckets = 512;
constexpr std::size_t zoomed_columns = 2000;

}  // namespace

std::span<const double> RunEntry::values(Quantity quantity) const {
  switch (quantity) {
    case Quantity::loss:
      return series_->loss;
    case Quantity::val_loss:
      return series_->val_loss;
    case Quantity::dt_ms:
      return series_->dt_ms;
    case Quantity::tokens_per_s:
      return tokens_per_s;
    case Quantity::lr:
      return series_->lr;
    case Quantity::grad_norm:
      return series_->grad_norm;
  }
  return {};
}

const MinMaxPyramid& RunEntry::levels(Quantity quantity) const {
  MinMaxPyramid& levels = levels_[static_cast<std::size_t>(quantity)];
  levels.follow(steps, values(quantity));
  return levels;
}

void RunEntry::set_series(Series read) {
  series_ = std::make_shared<Series>(std::move(read));
  ++rewritten;
  loaded = true;
  steps.clear();
  tokens_per_s.clear();
  levels_ = {};
  for (std::size_t i = 0; i < series_->size(); ++i) {
    steps.push_back(static_cast<double>(series_->step[i]));
    tokens_per_s.push_back(series_->tokens_per_s(i));
  }
}

void RunEntry::append(const StepRecord& record) {
  const bool is_next = series_->empty() || record.step > series_->step.back();
  series_->append(record);
  last_step_at = record.at;
  if (!is_next) return set_series(std::move(*series_));  // a resumed run's step counts anew
  steps.push_back(static_cast<double>(record.step));
  tokens_per_s.push_back(series_->tokens_per_s(series_->size() - 1));
}

void Workspace::load(RunStore& store) {
  ladders_ = store.ladders();
  const std::map<RunId, Curation> curations = store.curations();
  std::vector<RunEntry> before = std::exchange(runs_, {});
  std::map<RunId, std::size_t> old = std::exchange(index_, {});
  for (RunAndSummary& read : store.runs_with_summaries()) {
    const RunId id = read.run.id;
    index_[id] = runs_.size();
    RunEntry entry;
    if (const auto known = old.find(id); known != old.end()) {
      RunEntry& kept = before[known->second];
      const bool is_ours = std::find(queue_.begin(), queue_.end(), id) != queue_.end();
      if (is_ours || (kept.loaded && static_cast<std::int64_t>(kept.series().size()) == read.summary.steps))
        entry = std::move(kept);
      if (is_ours) read = {entry.run, entry.summary};
    }
    entry.run = std::move(read.run);
    entry.summary = read.summary;
    if (const auto said = curations.find(id); said != curations.end()) {
      entry.curation = said->second;
    } else {
      entry.curation = {};
    }
    runs_.push_back(std::move(entry));
  }
  overviews_.clear();
  zoomed_overviews_.clear();
  ++version;
  std::erase_if(selected_runs, [this](RunId id) { return !index_.contains(id); });
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
  details_[id] = {.metrics = store.system_metrics(id),
                  .samples = store.samples(id),
                  .checkpoints = checkpoints_in(run_checkpoint_folder(store.file(), id)),
                  .parts = store.mean_parts(found->run, found->summary.warmup_steps),
                  .console = lines_of(store.console(id)),
                  .profile = store.profile(id)};
}

void Workspace::load_overview(RunStore& store, RunId id, Quantity quantity) {
  if (!find(id)) return;
  overviews_[{id, quantity}] =
      std::make_shared<OverviewCurve>(curve_of(coarser(store.overview(id, quantity), overview_buckets)));
}

void Workspace::load_zoomed_overview(RunStore& store, RunId id, Quantity quantity, std::int64_t first,
                                     std::int64_t last) {
  if (!find(id)) return;
  OverviewCurve zoomed = curve_of(store.overview(id, quantity, first, last, zoomed_columns));
  zoomed.first = first;
  zoomed.last = last;
  zoomed_overviews_[{id, quantity}] = std::make_shared<OverviewCurve>(std::move(zoomed));
}

std::shared_ptr<const OverviewCurve> Workspace::overview(RunId id, Quantity quantity) const {
  const auto found = overviews_.find({id, quantity});
  return found == overviews_.end() ? nullptr : found->second;
}

std::shared_ptr<const OverviewCurve> Workspace::zoomed_overview(RunId id, Quantity quantity) const {
  const auto found = zoomed_overviews_.find({id, quantity});
  return found == zoomed_overviews_.end() ? nullptr : found->second;
}

const RunDetail* Workspace::detail(RunId id) const {
  const auto found = details_.find(id);
  return found == details_.end() ? nullptr : &found->second;
}

const StepProfile* Workspace::profile(RunId id) const {
  const RunDetail* found = detail(id);
  return found && found->profile.steps > 0 ? &found->profile : nullptr;
}

void Workspace::goes_on(RunStore& store, RunId id) {
  RunEntry* found = entry(id);
  if (!found) return;
  found->run = store.existing_run(id);
  found->set_series(store.series(id));  // steps after the checkpoint are repeated and replaced
  queue_.push_back(id);
  ++version;
}

void Workspace::curate(RunId id, const Curation& curation) {
  if (RunEntry* found = entry(id)) found->curation = curation;
  ++version;
}

void Workspace::rename(RunId id, const std::string& name) {
  if (RunEntry* found = entry(id)) found->run.name = name;
  ++version;
}

void Workspace::add_ladder(RunStore& store, LadderId ladder, const std::vector<RunId>& runs) {
  ladders_ = store.ladders();
  add_runs(store, runs);
  selected_ladder = ladder;
  selected_rung = -1;
  baseline_rung = 0;
}

void Workspace::add_runs(RunStore& store, const std::vector<RunId>& runs) {
  for (const RunId id : runs) {
    RunEntry entry;
    entry.run = store.existing_run(id);
    entry.loaded = true;  // every step of it will arrive here
    index_[id] = runs_.size();
    runs_.push_back(std::move(entry));
    queue_.push_back(id);
  }
  ++version;
}

bool Workspace::ingest(const RunEvent& event) {
  if (const auto* started = std::get_if<RunStarted>(&event)) {
    if (RunEntry* found = entry(started->run)) {
      Run& run = found->run;
      run.status = RunStatus::running;
      ++version;
      run.started_at = started->at;
      run.tokens_per_step = started->tokens_per_step;
      run.params = started->params;
      run.model_flops_per_token = 6.0 * static_cast<double>(started->params);
      run.loss_floor = started->loss_floor;
      run.device = started->device;
      run.hardware = started->hardware;
      run.precision = started->precision;
      run.attention = started->attention;
      run.setup_ms = started->setup_ms;
      run.sync = started->sync;
      run.recipe = started->recipe;
    }
  } else if (const auto* step = std::get_if<StepRecord>(&event)) {
    if (RunEntry* found = entry(step->run)) found->append(*step);
  } else if (const auto* sample = std::get_if<SystemMetrics>(&event)) {
    details_[sample->run].metrics.push_back(*sample);
  } else if (const auto* text = std::get_if<TextSample>(&event)) {
    details_[text->run].samples.push_back(*text);
  } else if (const auto* profile = std::get_if<StepProfile>(&event)) {
    details_[profile->run].profile = *profile;
  } else if (const auto* saved = std::get_if<CheckpointSaved>(&event)) {
    if (saved->error.empty()) details_[saved->run].checkpoints.push_back({saved->step, saved->folder});
  } else if (const auto* ended = std::get_if<RunEnded>(&event)) {
    std::erase(queue_, ended->run);
    ++version;
    std::erase_if(overviews_, [&](const auto& kept) { return kept.first.first == ended->run; });
    if (RunEntry* found = entry(ended->run)) {
      found->run.status = ended->status;
      found->run.reason = ended->reason;
      found->run.peak_memory_bytes = ended->peak_memory_bytes;
      found->run.ended_at = ended->at;
      found->summary = summarise(found->series(), found->run.warmup_steps, found->run.tokens_per_step);
    }
    return true;
  }
  return false;
}

const RunEntry* Workspace::find(RunId id) const {
  const auto found = index_.find(id);
  return found == index_.end() ? nullptr : &runs_[found->second];
}

RunEntry* Workspace::entry(RunId id) {
  return const_cast<RunEntry*>(find(id));
}

const Ladder* Workspace::ladder(LadderId id) const {
  const auto found = std::find_if(ladders_.begin(), ladders_.end(), [id](const Ladder& l) { return l.id == id; });
  return found == ladders_.end() ? nullptr : &*found;
}

std::vector<const RunEntry*> Workspace::runs_of(LadderId ladder) const {
  std::vector<const RunEntry*> found;
  for (const RunEntry& entry : runs_) {
    if (entry.run.ladder == ladder) found.push_back(&entry);
  }
  std::sort(found.begin(), found.end(), [](const RunEntry* a, const RunEntry* b) {
    return std::pair(a->run.rung, a->run.repeat) < std::pair(b->run.rung, b->run.repeat);
  });
  return found;
}

const RunEntry* Workspace::running() const {
  for (const RunId id : queue_) {
    const RunEntry* found = find(id);
    if (found && found->run.status == RunStatus::running) return found;
  }
  return nullptr;
}

const RunEntry* Workspace::shown_live() const {
  if (const RunEntry* now_running = running()) return now_running;
  const RunEntry* last = nullptr;
  for (const RunEntry& entry : runs_) {
    const bool newer = !last || (!is_missing(entry.run.started_at) &&
                                 (is_missing(last->run.started_at) || entry.run.started_at > last->run.started_at));
    if (entry.run.source == "launched" && entry.run.status != RunStatus::queued && newer) last = &entry;
  }
  return last;
}

const Ladder* Workspace::shown_ladder() const {
  if (const Ladder* chosen = ladder(selected_ladder)) return chosen;
  return ladders_.empty() ? nullptr : &ladders_.back();
}

std::vector<const RunEntry*> Workspace::compared() const {
  std::vector<const RunEntry*> found;
  for (const RunId id : selected_runs) {
    if (const RunEntry* entry = find(id)) found.push_back(entry);
  }
  if (found.empty()) {
    if (const Ladder* shown = shown_ladder()) found = runs_of(shown->id);
  }
  return found;
}

std::vector<const RunEntry*> Workspace::waiting() const {
  std::vector<const RunEntry*> found;
  for (const RunId id : queue_) {
    const RunEntry* queued = find(id);
    if (queued && queued->run.status == RunStatus::queued) found.push_back(queued);
  }
  return found;
}

void Workspace::order_queue(const std::vector<RunId>& waiting) {
  const auto place = [&](RunId id) {
    const auto found = std::find(waiting.begin(), waiting.end(), id);
    return found == waiting.end() ? std::ptrdiff_t{-1} : found - waiting.begin();
  };
  std::stable_sort(queue_.begin(), queue_.end(), [&](RunId a, RunId b) { return place(a) < place(b); });
}

double Workspace::seconds_left(const RunEntry& run) const {
  const double each = seconds_per_step(run);
  if (is_missing(each)) return missing;
  return each * static_cast<double>(run.run.planned_steps - static_cast<std::int64_t>(run.series().size()));
}

double Workspace::seconds_off(const RunEntry& run) const {
  constexpr std::size_t blocks = 10;
  const std::vector<double>& dt = run.series().dt_ms;
  const std::size_t each = dt.size() / blocks;
  if (each == 0 || is_missing(seconds_left(run))) return missing;
  double sum = 0;
  double squares = 0;
  for (std::size_t block = 0; block < blocks; ++block) {
    double mean = 0;
    for (std::size_t i = dt.size() - each * (block + 1); i < dt.size() - each * block; ++i)
      mean += std::isfinite(dt[i]) ? dt[i] / static_cast<double>(each) : 0;
    sum += mean;
    squares += mean * mean;
  }
  const double mean = sum / blocks;
  if (mean <= 0) return missing;
  const double error = std::sqrt(std::max(0.0, squares / blocks - mean * mean) / (blocks - 1));
  return 2 * seconds_left(run) * error / mean;
}

double Workspace::seconds_left_of_all() const {
  const RunEntry* now_running = running();
  if (!now_running) return missing;
  const double each = seconds_per_step(*now_running);
  if (is_missing(each)) return missing;
  double left = seconds_left(*now_running);
  for (const RunEntry* queued : waiting()) left += each * static_cast<double>(queued->run.planned_steps);
  return left;
}

}  // namespace stepladder
