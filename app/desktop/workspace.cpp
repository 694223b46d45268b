#include "app/desktop/workspace.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "app/desktop/theme.h"
#include "app/terminal_text.h"

namespace stepladder {
namespace {

// What the rest of a run is predicted from: the steps of its later half, which tell most about those to come, and the
// run's mean time between steps (validation, checkpoints), without pauses.
struct StepPace {
  double seconds = missing;  // a step's
  double off = missing;      // the prediction's uncertainty
};

StepPace pace_of(const RunEntry& entry) {
  const std::vector<double>& dt = entry.series().dt_ms;
  if (dt.size() < 10 || is_missing(entry.last_step_at) || is_missing(entry.run.started_at)) return {};
  constexpr std::size_t most_looked_at = 20'000;
  std::vector<double> known;
  double sum = 0;
  std::size_t timed = 0;
  for (std::size_t i = 0; i < dt.size(); ++i) {
    if (!std::isfinite(dt[i])) continue;
    sum += dt[i] / 1000;
    ++timed;
    if (i + most_looked_at >= dt.size()) known.push_back(dt[i] / 1000);
  }
  const auto steps = static_cast<double>(dt.size());
  const double wall = entry.last_step_at - entry.run.started_at - entry.paused_seconds;
  if (known.size() < 10) return {.seconds = std::max(wall, 0.0) / steps};
  const std::size_t blocks = std::min<std::size_t>(10, known.size() / 2);
  const std::size_t each = known.size() / 2 / blocks;
  double mean = 0;
  double squares = 0;
  for (std::size_t block = 0; block < blocks; ++block) {
    const auto end = known.end() - static_cast<std::ptrdiff_t>(each * block);
    const double of_block =
        std::accumulate(end - static_cast<std::ptrdiff_t>(each), end, 0.0) / static_cast<double>(each);
    mean += of_block / static_cast<double>(blocks);
    squares += of_block * of_block / static_cast<double>(blocks);
  }
  const double error = std::sqrt(std::max(0.0, squares - mean * mean) / static_cast<double>(blocks - 1));
  const double drift = std::fabs(mean - sum / static_cast<double>(timed));
  const double between = std::max(0.0, wall - sum) / steps;
  return {.seconds = mean + between, .off = std::max(2.3 * error, drift)};  // Student's t of ten blocks
}

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
  return {};  // metrics are read as overviews
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
  if (!series_->empty()) last_step_at = series_->at.back();
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

void RunEntry::take_again(const Series& read) {
  if (read.empty()) return;
  const std::vector<std::int64_t>& known = series_->step;
  const auto first = std::lower_bound(known.begin(), known.end(), read.step.front()) - known.begin();
  const auto end = std::upper_bound(known.begin(), known.end(), read.step.back()) - known.begin();
  const auto for_columns = [&](auto use) {
    return use(series_->step, read.step) && use(series_->tokens, read.tokens) && use(series_->loss, read.loss) &&
           use(series_->val_loss, read.val_loss) && use(series_->dt_ms, read.dt_ms) && use(series_->lr, read.lr) &&
           use(series_->grad_norm, read.grad_norm) && use(series_->at, read.at);
  };
  const bool is_same = end - first == std::ssize(read.step) && for_columns([&](const auto& column, const auto& now) {
                         return std::memcmp(column.data() + first, now.data(), now.size() * sizeof now[0]) == 0;
                       });
  if (is_same) return;
  for_columns([&](auto& column, const auto& now) {
    const auto at = column.erase(column.begin() + first, column.begin() + end);
    column.insert(at, now.begin(), now.end());
    return true;
  });
  set_series(std::move(*series_));
}

const SkippedRung* LaunchPlan::skipped(int asked_place) const {
  const auto found = std::find_if(plan.skipped.begin(), plan.skipped.end(),
                                  [&](const SkippedRung& each) { return each.asked == asked_place; });
  return found == plan.skipped.end() ? nullptr : &*found;
}

std::string text_of(const LadderRequest& request) {
  return to_json(request.base) + " " + rungs_text(request.rungs) + (request.climb == Climb::alone ? " alone" : "");
}

void Workspace::load(RunStore& store) {
  ladders_ = store.ladders();
  views = store.views().names();
  const std::map<RunId, Curation> curations = store.curations();
  std::vector<RunEntry> before = std::exchange(runs_, {});
  std::map<RunId, std::size_t> old = std::exchange(index_, {});
  for (RunAndSummary& read : store.runs_with_summaries()) {
    const RunId id = read.run.id;
    index_[id] = runs_.size();
    RunEntry entry;
    if (const auto known = old.find(id); known != old.end()) {
      RunEntry& kept = before[known->second];
      const bool ours = is_ours(id);
      const bool followed = std::find(others_.begin(), others_.end(), id) != others_.end();
      if (ours || followed || (kept.loaded && static_cast<std::int64_t>(kept.series().size()) == read.summary.steps))
        entry = std::move(kept);
      if (ours) read = {entry.run, entry.summary};
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
  ++curves_forgotten_;
  overviews_.clear();
  zoomed_overviews_.clear();
  metrics_.clear();
  for (const auto& each : details_) fit_profile(each.first);
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
                  .checkpoints = run_checkpoints(checkpoint_owner(store.file(), found->run)),
                  .parts = store.mean_parts(found->run, found->summary.warmup_steps),
                  .console = console_lines(store.console(id)),
                  .profile = store.profile(id)};
  fit_profile(id);
}

void Workspace::load_metrics(RunStore& store, RunId id) {
  if (find(id)) metrics_[id] = store.metrics().names(id);
}

CurveWanted Workspace::wanted(RunId id, Quantity quantity, std::optional<Steps> zoom) const {
  const auto logged = logged_.find(id);
  return {.run = id,
          .quantity = quantity,
          .zoom = zoom,
          .asked_at = curves_forgotten_,
          .logged = logged == logged_.end() ? 0 : logged->second};
}

void Workspace::keep(const CurveRead& read) {
  const CurveWanted& of = read.wanted;
  if (!find(of.run) || !read.problem.empty() || of.asked_at != curves_forgotten_) return;
  if (of.is_steps) {
    steps_read_at_[of.run] = {.logged = of.logged, .at = read.at, .took = read.took};
    entry(of.run)->take_again(*read.steps);
    return;
  }
  (of.zoom ? zoomed_overviews_ : overviews_)[{of.run, of.quantity}] = read.curve;
  const Extent extent = of.zoom ? Extent::zoomed : Extent::whole;
  if (!is_field(of.quantity))
    metrics_loaded_at_[{of.run, of.quantity, extent}] = {.logged = of.logged, .at = read.at, .took = read.took};
}

bool Workspace::is_due(const LoadedAt& loaded, RunId id) const {
  constexpr int share = 20;  // of the time, at most one part is spent on reading again what grows
  const auto logged = logged_.find(id);
  return logged != logged_.end() && logged->second != loaded.logged &&
         std::chrono::steady_clock::now() - loaded.at > share * loaded.took;
}

bool Workspace::is_outdated(RunId id, Quantity metric, Extent extent) const {
  const auto loaded = metrics_loaded_at_.find({id, metric, extent});
  return loaded != metrics_loaded_at_.end() && is_due(loaded->second, id);
}

std::vector<CurveWanted> Workspace::late_steps() const {
  std::vector<CurveWanted> late;
  for (const RunId id : others_) {
    const RunEntry* found = find(id);
    if (!found || found->run.status != RunStatus::running || found->run.source != "import" || found->steps.empty())
      continue;
    const auto loaded = steps_read_at_.find(id);
    if (!is_due(loaded == steps_read_at_.end() ? LoadedAt{} : loaded->second, id)) continue;
    const std::vector<std::int64_t>& steps = found->series().step;
    const std::size_t most = std::min<std::size_t>(steps.size(), most_steps_read_whole);
    late.push_back(wanted(id, Quantity::loss, Steps(steps[steps.size() - most], steps.back())));
    late.back().is_steps = true;
  }
  return late;
}

std::int64_t Workspace::logged_so_far() const {
  std::int64_t sum = 0;
  for (const auto& [run, times] : logged_) sum += static_cast<std::int64_t>(times);
  if (const RunEntry* entry = running()) sum += static_cast<std::int64_t>(entry->series().size());
  return sum;
}

std::optional<double> Workspace::figure(RunId run, const MetricFigure& figure) const {
  if (!project_metrics || !project_metrics->table.has(figure)) return std::nullopt;
  return project_metrics->table.value(run, figure);
}

const std::vector<Metric>* Workspace::metrics(RunId id) const {
  const auto found = metrics_.find(id);
  return found == metrics_.end() ? nullptr : &found->second;
}

void Workspace::forget_curves(RunId id) {
  ++curves_forgotten_;
  for (auto* const curves : {&overviews_, &zoomed_overviews_})
    std::erase_if(*curves, [&](const auto& kept) { return kept.first.first == id; });
  std::erase_if(metrics_loaded_at_, [&](const auto& kept) { return std::get<RunId>(kept.first) == id; });
  steps_read_at_.erase(id);
  metrics_.erase(id);
  logged_.erase(id);
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

void Workspace::fit_profile(RunId id) {
  const auto detail = details_.find(id);
  const RunEntry* found = find(id);
  if (detail != details_.end() && found)
    detail->second.fitted = fit_to_step(detail->second.profile, found->summary.dt_ms_median);
}

const FittedProfile* Workspace::profile(RunId id) const {
  const RunDetail* found = detail(id);
  return found && found->profile.steps > 0 ? &found->fitted : nullptr;
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
    add_entry(store.existing_run(id)).loaded = true;  // every step of it will arrive here
    queue_.push_back(id);
  }
  ++version;
}

RunEntry& Workspace::add_entry(const Run& run) {
  index_[run.id] = runs_.size();
  RunEntry entry;
  entry.run = run;
  runs_.push_back(std::move(entry));
  return runs_.back();
}

void Workspace::follow_others(RunStore& store, const std::vector<Run>& under_way) {
  const auto goes_on = [&](RunId id) {
    return std::any_of(under_way.begin(), under_way.end(), [&](const Run& run) { return run.id == id; });
  };
  for (const RunId id : std::vector<RunId>(others_)) {
    if (!goes_on(id)) end_followed(store, id);
  }
  const std::vector<RunId> order_before = others_;
  for (const Run& run : under_way) {
    if (is_ours(run.id)) continue;
    const bool is_new = std::find(others_.begin(), others_.end(), run.id) == others_.end();
    RunEntry* found = entry(run.id);
    if (!found) {
      found = &add_entry(run);
      if (run.ladder && !ladder(*run.ladder)) ladders_ = store.ladders();
    }
    if (is_new || found->run.status != run.status) ++version;
    found->run = run;
    if (is_new) {
      others_.push_back(run.id);
      followed_.insert(run.id);
      found->set_series(store.series(run.id));
    } else if (run.status == RunStatus::running) {
      read_new_steps(store, *found);
    }
  }
  const auto place = [&](RunId id) {
    return std::find_if(under_way.begin(), under_way.end(), [&](const Run& run) { return run.id == id; });
  };
  std::sort(others_.begin(), others_.end(), [&](RunId a, RunId b) { return place(a) < place(b); });
  if (others_ != order_before) ++version;
}

void Workspace::read_new_steps(RunStore& store, RunEntry& followed) {
  const std::int64_t last = followed.series().empty() ? 0 : followed.series().step.back();
  const Series read = store.series(followed.run.id, last + 1, std::numeric_limits<std::int64_t>::max());
  for (std::size_t i = 0; i < read.size(); ++i) {
    count_pause(followed, read.at[i], read.dt_ms[i]);
    followed.append({.run = followed.run.id,
                     .step = read.step[i],
                     .loss = read.loss[i],
                     .val_loss = read.val_loss[i],
                     .dt_ms = read.dt_ms[i],
                     .tokens = read.tokens[i],
                     .lr = read.lr[i],
                     .grad_norm = read.grad_norm[i],
                     .at = read.at[i]});
  }
  ++logged_[followed.run.id];
  if (metrics_.contains(followed.run.id)) load_metrics(store, followed.run.id);
  if (const auto shown = details_.find(followed.run.id); shown != details_.end())
    shown->second.metrics = store.system_metrics(followed.run.id);
}

void Workspace::end_followed(RunStore& store, RunId id) {
  std::erase(others_, id);
  forget_curves(id);
  details_.erase(id);
  ++version;
  RunEntry* found = entry(id);
  const std::optional<Run> run = store.run(id);
  if (!found || !run) return;
  found->run = *run;
  found->summary = store.summary(*run);
  const bool may_have_late_values = run->source == "import" && found->summary.steps <= most_steps_read_whole;
  if (may_have_late_values || static_cast<std::int64_t>(found->series().size()) != found->summary.steps)
    found->set_series(store.series(id));
}

// The first step after a pause says how long it took.
void Workspace::count_pause(RunEntry& run, double at, double dt_ms) {
  if (!was_paused_) return;
  was_paused_ = is_paused;
  if (!is_missing(run.last_step_at) && dt_ms >= 0)
    run.paused_seconds += std::max(0.0, at - run.last_step_at - dt_ms / 1000);
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
    if (RunEntry* found = entry(step->run)) {
      count_pause(*found, step->at, step->dt_ms);
      found->append(*step);
    }
  } else if (const auto* values = std::get_if<MetricValues>(&event)) {
    ++logged_[values->run];
  } else if (const auto* sample = std::get_if<SystemMetrics>(&event)) {
    details_[sample->run].metrics.push_back(*sample);
  } else if (const auto* text = std::get_if<TextSample>(&event)) {
    details_[text->run].samples.push_back(*text);
  } else if (const auto* note = std::get_if<ConsoleText>(&event)) {
    for (std::string& line : console_lines(note->text)) details_[note->run].console.push_back(std::move(line));
  } else if (const auto* profile = std::get_if<StepProfile>(&event)) {
    details_[profile->run].profile = *profile;
    fit_profile(profile->run);
  } else if (const auto* saved = std::get_if<CheckpointSaved>(&event)) {
    if (saved->error.empty()) details_[saved->run].checkpoints.push_back({saved->step, saved->folder});
  } else if (const auto* ended = std::get_if<RunEnded>(&event)) {
    std::erase(queue_, ended->run);
    ++version;
    forget_curves(ended->run);
    if (RunEntry* found = entry(ended->run)) {
      found->run.status = ended->status;
      found->run.reason = ended->reason;
      found->run.peak_memory_bytes = ended->peak_memory_bytes;
      found->run.ended_at = ended->at;
      found->summary =
          summarise(found->series(), found->run.warmup_steps, found->run.tokens_per_step, details_[ended->run].metrics);
    }
    fit_profile(ended->run);
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
  for (const std::vector<RunId>* runs : {&queue_, &others_}) {
    for (const RunId id : *runs) {
      const RunEntry* found = find(id);
      if (found && found->run.status == RunStatus::running) return found;
    }
  }
  return nullptr;
}

bool Workspace::is_ours(RunId run) const {
  return std::find(queue_.begin(), queue_.end(), run) != queue_.end();
}

bool Workspace::trains_here() const {
  return std::any_of(queue_.begin(), queue_.end(), [this](RunId id) {
    const RunEntry* found = find(id);
    return found && found->goes_on();
  });
}

const RunEntry* Workspace::shown_live() const {
  if (const RunEntry* now_running = running()) return now_running;
  const RunEntry* last = nullptr;
  for (const RunEntry& entry : runs_) {
    const bool newer = !last || (!is_missing(entry.run.started_at) &&
                                 (is_missing(last->run.started_at) || entry.run.started_at > last->run.started_at));
    const bool is_seen = entry.run.source == "launched" || followed_.contains(entry.run.id);
    if (is_seen && entry.run.status != RunStatus::queued && newer) last = &entry;
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
  for (const std::vector<RunId>* runs : {&queue_, &others_}) {
    for (const RunId id : *runs) {
      const RunEntry* queued = find(id);
      if (queued && queued->run.status == RunStatus::queued) found.push_back(queued);
    }
  }
  return found;
}

void Workspace::pause(bool paused) {
  is_paused = paused;
  was_paused_ = was_paused_ || paused;
}

void Workspace::order_queue(const std::vector<RunId>& waiting) {
  const auto place = [&](RunId id) {
    const auto found = std::find(waiting.begin(), waiting.end(), id);
    return found == waiting.end() ? std::ptrdiff_t{-1} : found - waiting.begin();
  };
  std::stable_sort(queue_.begin(), queue_.end(), [&](RunId a, RunId b) { return place(a) < place(b); });
}

int Workspace::colour_of(const Run& run) const {
  const auto chosen = run_colours.find(run.id);
  return chosen == run_colours.end() ? run.rung : chosen->second;
}

std::vector<int> Workspace::colours_of(const std::vector<RunId>& lines) const {
  std::array<bool, rung_colour_count> taken{};
  std::vector<int> colours(lines.size(), -1);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto chosen = run_colours.find(lines[i]);
    if (chosen == run_colours.end()) continue;
    colours[i] = chosen->second % rung_colour_count;
    taken[static_cast<std::size_t>(colours[i])] = true;
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (colours[i] >= 0) continue;
    const RunEntry* entry = find(lines[i]);
    int colour = (entry ? entry->run.rung : 0) % rung_colour_count;
    for (int tries = 0; taken[static_cast<std::size_t>(colour)] && tries < rung_colour_count; ++tries)
      colour = (colour + 1) % rung_colour_count;
    taken[static_cast<std::size_t>(colour)] = true;
    colours[i] = colour;
  }
  return colours;
}

double Workspace::seconds_left(const RunEntry& run) const {
  if (run.run.planned_steps <= 0) return missing;  // a script's: nobody knows
  const auto steps = static_cast<double>(run.run.planned_steps - static_cast<std::int64_t>(run.series().size()));
  const double each = pace_of(run).seconds;
  return is_missing(each) ? missing : each * steps;
}

double Workspace::seconds_off(const RunEntry& run) const {
  const auto steps = static_cast<double>(run.run.planned_steps - static_cast<std::int64_t>(run.series().size()));
  const double each = pace_of(run).off;
  return is_missing(each) ? missing : each * steps;
}

double Workspace::seconds_left_of_all() const {
  const RunEntry* now_running = running();
  if (!now_running) return missing;
  const double each = pace_of(*now_running).seconds;
  if (is_missing(each)) return missing;
  double left = seconds_left(*now_running);
  for (const RunEntry* queued : waiting()) left += each * static_cast<double>(queued->run.planned_steps);
  return left;
}

}  // namespace stepladder
