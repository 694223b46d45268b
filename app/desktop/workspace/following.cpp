// Updates runs that are added, continue and end: this session's by their events, other processes' by what they have
// written.
#include <algorithm>
#include <limits>
#include <utility>

#include "app/desktop/workspace.h"
#include "app/session/session.h"
#include "app/text/terminal_text.h"
#include "storage/record_fields.h"

namespace stepladder {

void Workspace::continue_run(RunStore& store, RunId id) {
  RunEntry* found = entry(id);
  if (!found) return;
  found->run = store.existing_run(id);
  found->set_series(store.series(id));  // steps after the checkpoint are repeated and replaced
  queue_.push_back(id);
  ++version;
}

void Workspace::add_ladder(RunStore& store, LadderId ladder, const std::vector<RunId>& runs) {
  ladders_ = store.ladders();
  if (const Ladder* added = this->ladder(ladder)) left_out[ladder] = skipped_rungs(store, *added);
  add_runs(store, runs);
  selection.show_ladder(ladder);
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
  const auto is_under_way = [&](RunId id) {
    return std::ranges::any_of(under_way, [&](const Run& run) { return run.id == id; });
  };
  for (const RunId id : std::vector<RunId>(others_))
    if (!is_under_way(id)) end_followed(store, id);
  std::erase_if(just_ended_, [&](RunId id) { return !is_under_way(id); });
  const std::vector<RunId> order_before = others_;
  for (const Run& run : under_way) {
    if (is_ours(run.id) || just_ended_.contains(run.id)) continue;
    const bool is_new = std::ranges::find(others_, run.id) == others_.end();
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
  const auto place = [&](RunId id) { return std::ranges::find(under_way, id, &Run::id); };
  std::ranges::sort(others_, [&](RunId a, RunId b) { return place(a) < place(b); });
  if (others_ != order_before) ++version;
}

void Workspace::read_new_steps(RunStore& store, RunEntry& followed) {
  const std::int64_t last = followed.series().empty() ? 0 : followed.series().step.back();
  const Series read = store.series(followed.run.id, last + 1, std::numeric_limits<std::int64_t>::max());
  for (std::size_t i = 0; i < read.size(); ++i) {
    count_pause(followed, read.at[i], read.dt_ms[i]);
    followed.append(record_of(read, i));
  }
  ++logged_[followed.run.id];
  if (metrics_.contains(followed.run.id)) load_metrics(store, followed.run.id);
  if (const auto shown = details_.find(followed.run.id); shown != details_.end())
    shown->second.metrics = store.recordings().system_metrics(followed.run.id);
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
  update_spreads();
}

// The first step after a pause shows how long the pause took.
void Workspace::count_pause(RunEntry& run, double at, double dt_ms) {
  if (!was_paused_) return;
  was_paused_ = is_paused;
  if (!is_missing(run.last_step_at) && dt_ms >= 0)
    run.paused_seconds += std::max(0.0, at - run.last_step_at - dt_ms / 1000);
}

bool Workspace::ingest(const RunEvent& event) {
  if (const auto* started = std::get_if<RunStarted>(&event)) {
    if (RunEntry* found = entry(started->run)) {
      merge(found->run, *started);
      ++version;
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
    just_ended_.insert(ended->run);
    ++version;
    forget_curves(ended->run);
    if (RunEntry* found = entry(ended->run)) {
      found->run.status = ended->status;
      found->run.reason = ended->reason;
      found->run.peak_memory_bytes = ended->peak_memory_bytes;
      found->run.ended_at = ended->at;
      found->summary = summarise(found->run, found->series(), details_[ended->run].metrics);
    }
    fit_profile(ended->run);
    update_spreads();
    return true;
  }
  return false;
}

void Workspace::pause(bool paused) {
  is_paused = paused;
  was_paused_ = was_paused_ || paused;
}

void Workspace::order_queue(const std::vector<RunId>& waiting) {
  const auto place = [&](RunId id) {
    const auto found = std::ranges::find(waiting, id);
    return found == waiting.end() ? std::ptrdiff_t{-1} : found - waiting.begin();
  };
  std::ranges::stable_sort(queue_, [&](RunId a, RunId b) { return place(a) < place(b); });
}

}  // namespace stepladder
