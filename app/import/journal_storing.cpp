// Stores the pieces that JournalFollower reads: finds the run, then writes its steps, metrics, texts and facts together
// with the new position in one transaction.
#include <algorithm>
#include <utility>

#include "app/import/journal_follower.h"
#include "storage/importers/trackers/foreign_run.h"
#include "storage/json_values.h"

namespace stepladder {
namespace {

constexpr std::int64_t longest_kept_output = 16 << 20;  // of a journal: later output is only read for steps

bool has_end(const std::vector<JournalEvent>& events) {
  return std::ranges::any_of(events, [](const auto& event) { return event.kind == "end"; });
}

}  // namespace

void JournalFollower::store(Group& group, File& file, const Piece& piece) {
  LoggedSteps steps = file.steps;
  const RunId before = group.run;
  const std::uint64_t skipped_before = file.skipped;
  const bool ended_before = file.ended;
  FollowedSource position = file.stored;
  bool ended = false;
  try {
    position = intake_.take(file.source, file.stored, [&] {
      if (group.joined)
        group.run = *group.joined;
      else if (const RunId known = run_of(group, file, store_.following().position(file.source));
               known != before && store_.run(known))
        throw PositionConflict();  // another follower has begun it
      if (file.planned && !group.joined)
        store_own(group, file, piece);
      else
        store_script(group, file, piece, steps);
      if (!group.joined) own(group, file, before != group.run);
      if (request_.created && before != group.run) request_.created(group.run);
      ended = has_end(piece.events);
      file.ended = file.ended || ended;
      file.skipped += piece.skipped;
      return FollowedSource{group.run, static_cast<std::int64_t>(piece.end), state_of(group, file, steps)};
    });
  } catch (...) {
    group.run = before;
    file.skipped = skipped_before;
    file.ended = ended_before;
    throw;
  }
  file.steps = std::move(steps);
  file.stored = std::move(position);
  group.values_read += std::ssize(piece.events);
  if (before != group.run && !request_.is_far)
    intake_.report("run " + std::to_string(group.run) + (group.joined ? " takes in " : " is ") +
                   group.folder.filename().string());
  if (ended && !group.joined && file.header->rank == 0) intake_.finish(group.run);
}

void JournalFollower::store_script(Group& group, File& file, const Piece& piece, LoggedSteps& steps) {
  if (group.run == 0 || !store_.run(group.run)) create_run(group, file);
  JournalRun run(store_.existing_run(group.run));
  run.take_descriptions(group.descriptions);
  for (const JournalEvent& event : piece.events) run.take(event, *file.header, steps);
  group.descriptions = run.descriptions();
  LoggedBatch batch = steps.take(run.tokens_per_sample());
  run.describe(batch);
  store_batch(group, file, batch);
  for (TextSample& text : run.take_texts()) {
    text.run = group.run;
    store_.apply(std::vector<RunEvent>{text});
  }
  for (ConsoleText& output : run.take_outputs()) {
    output.run = group.run;
    if (file.stored.bytes < longest_kept_output) store_.apply(std::vector<RunEvent>{output});
  }
  if (group.joined)
    update_joined_run(group.run, run, steps);
  else
    update_run(group.run, file, run, steps);
}

// Stores a journal of one of Stepladder's own runs, so that the run becomes what it is in the database of the process
// that trains it: the same row, and the same events.
void JournalFollower::store_own(Group& group, File& file, const Piece& piece) {
  if (group.run == 0 || !store_.run(group.run) || file.stored.bytes == 0) queue_own(group, file);
  if (file.stored.bytes == 0) file.status = RunStatus::queued;
  Run run = store_.existing_run(group.run);
  if (run.status == RunStatus::interrupted && !is_over(file.status)) {  // by a follower that was gone meanwhile
    Intake::resume(run);
    run.status = file.status;
    store_.update_run(run);
  }
  std::vector<RunEvent> events;
  for (const JournalEvent& event : piece.events) {
    if (auto own = run_event_of(event, group.run)) events.push_back(std::move(*own));
    if (event.kind == "started") file.status = RunStatus::running;
  }
  store_.following().apply(events);
}

// Sets the run's owner: the process that logs it, so that every Stepladder sees it exit; if that isn't known here, this
// process for as long as it reads.
void JournalFollower::own(const Group& group, const File& file, bool is_new) {
  if (group.run == 0 || (!file.planned && file.header->rank > 0 && !is_new)) return;
  if (request_.is_far || (is_new && request_.once)) store_.following().disown(group.run);
  if (!request_.is_far && is_alive_here(*file.header))
    store_.following().own(group.run, writer_of(*file.header));
  else if (!request_.is_far && !request_.once)
    store_.following().own(group.run, this_process());
}

// Creates the run, or begins its next attempt.
void JournalFollower::queue_own(Group& group, const File& file) {
  if (group.run != 0 && store_.run(group.run)) {
    Run again = store_.existing_run(group.run);
    again.status = RunStatus::queued;
    again.planned_steps = file.planned->run.planned_steps;
    again.environment = file.planned->run.environment;
    store_.update_run(again);
    return;
  }
  Run run = file.planned->run;
  run.uid = file.header->uid;
  if (!request_.name.empty()) run.name = request_.name;
  place_own(group, *file.planned, run);
  group.run = store_.create_run(run);
}

// Parent and ladder must be from the same place, whatever a journal says.
void JournalFollower::place_own(Group& group, const PlannedRun& planned, Run& run) {
  const auto accepts = [&](std::optional<RunId> other, const std::string& what) {
    const auto known = other ? store_.run(*other) : std::nullopt;
    if (known && is_beside(store_, *known, group.origin)) return true;
    intake_.report(group.folder.string() + " names " + what + ", which isn't from there; the run is kept without it");
    return false;
  };
  if (const auto parent = store_.following().run_with_uid(planned.parent_uid);
      parent && accepts(parent, "run " + std::to_string(*parent) + " as its parent"))
    run.parent = parent;
  if (!planned.ladder || !Uid::allows(planned.ladder->uid)) return;
  const auto ladder = store_.following().ladder_with_uid(planned.ladder->uid);
  if (!ladder)
    run.ladder = store_.create_ladder(*planned.ladder);
  else if (accepts(store_.following().first_run_of(*ladder), "ladder " + std::to_string(*ladder)))
    run.ladder = ladder;
}

// The state that a later follower needs to continue, as JSON.
std::string JournalFollower::state_of(const Group& group, const File& file, const LoggedSteps& steps) const {
  Json state = {{"origin", group.origin.json()}};
  if (file.ended) state["ended"] = true;
  if (file.skipped > 0) state["skipped"] = file.skipped;
  if (file.planned && !group.joined) {
    state["told"] = to_string(file.status);
    return state.dump();
  }
  state["steps"] = Json::parse(steps.state());
  state["metrics"] = group.descriptions;
  if (group.joined) state["joined"] = file.path.string();
  if (file.completes_existing) state["heals"] = true;
  return state.dump();
}

void JournalFollower::create_run(Group& group, const File& file) {
  const std::string own_name = file.header->name.empty() ? group.folder.filename().string() : file.header->name;
  const Run run{.uid = file.header->uid,
                .name = request_.name.empty() ? own_name : request_.name,
                .created_at = file.header->started_at,
                .started_at = file.header->started_at};
  group.run = intake_.begin(run, group.folder);
}

// Continues a run that was taken for interrupted. Its owner is the process that logs it or, for another machine's run,
// this one.
void JournalFollower::update_run(RunId id, const File& file, const JournalRun& journal, const LoggedSteps& steps) {
  const Run before = store_.existing_run(id);
  Run run = journal.run();
  if (before.status == RunStatus::interrupted && run.status == RunStatus::interrupted) Intake::resume(run);
  if (file.header->rank == 0 && run.tokens_per_step == 0) run.tokens_per_step = steps.tokens_per_step();
  if (journal.changed() || run.status != before.status || run.tokens_per_step != before.tokens_per_step)
    store_.update_run(run);
}

void JournalFollower::update_joined_run(RunId id, const JournalRun& journal, const LoggedSteps& steps) {
  Run run = store_.existing_run(id);
  const Run logged = journal.run();
  run.recipe = logged.recipe;
  run.environment = logged.environment;
  run.sync = logged.sync;
  if (run.tokens_per_step == 0) run.tokens_per_step = steps.tokens_per_step();
  store_.update_run(run);
}

// A step's parts may come in several pieces: they make one record. A new attempt supersedes the older one's.
void JournalFollower::store_batch(const Group& group, File& file, LoggedBatch& batch) {
  const RunId run = group.run;
  if (file.header->rank == 0)
    intake_.add(run, batch, group.joined ? Merge::joined : Merge::own, file.completes_existing);
  if (file.header->rank == 0 && group.joined && file.steps.has_timed_steps()) has_joined_times_ = true;
  for (auto& [metric, points] : batch.metrics) {
    if (file.header->rank > 0 && !metric.field.empty()) continue;
    if (group.joined) joined_metrics_.insert(metric.name);
    intake_.add(run, metric, points);
  }
}

}  // namespace stepladder
