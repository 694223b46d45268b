#include "storage/database/following/follow_store.h"

#include "storage/database/database.h"
#include "storage/database/derived/derived.h"
#include "storage/database/events/event_rows.h"
#include "storage/database/run_rows.h"
#include "storage/database/step_rows.h"
#include "storage/json_values.h"

namespace stepladder {

std::optional<FollowedSource> FollowStore::position(std::string_view source) {
  Statement row(database_, "SELECT run_id, bytes, state FROM followed WHERE source = ?", source);
  if (!row.step()) return std::nullopt;
  FollowedSource found{row.integer(0), row.integer(1), row.text(2)};
  if (nests_deep(found.state)) found.state.clear();  // a stranger's; what reads it recurses
  return found;
}

void FollowStore::set_position(std::string_view source, const FollowedSource& position) {
  database_.insert("OR REPLACE INTO followed", "source, run_id, bytes, state", source, position.run, position.bytes,
                   position.state);
}

std::vector<FollowedSource> FollowStore::journals(std::string_view uid) {
  Statement rows(database_, "SELECT run_id, bytes, state FROM followed WHERE source > ? AND source < ?");
  const std::string begin = "journal " + std::string(uid);
  rows.bind(begin + " ").bind(begin + "!");  // the character after the space
  std::vector<FollowedSource> found;
  while (rows.step()) found.push_back({rows.integer(0), rows.integer(1), rows.text(2)});
  return found;
}

bool FollowStore::is_followed(RunId run) {
  return database_.has("SELECT 1 FROM followed WHERE run_id = ?", run);
}

std::vector<std::string> FollowStore::sources_of(RunId run) {
  return database_.texts("SELECT source FROM followed WHERE run_id = ? ORDER BY source", run);
}

std::optional<RunId> FollowStore::run_with_uid(std::string_view uid) {
  return database_.find("SELECT id FROM runs WHERE uid = ? AND hidden = 0 ORDER BY id LIMIT 1", uid);
}

std::optional<LadderId> FollowStore::ladder_with_uid(std::string_view uid) {
  return database_.find("SELECT id FROM ladders WHERE uid = ? ORDER BY id LIMIT 1", uid);
}

std::optional<RunId> FollowStore::first_run_of(LadderId ladder) {
  return database_.find("SELECT min(id) FROM runs WHERE ladder_id = ?", ladder);
}

void FollowStore::apply(std::span<const RunEvent> events) {
  const auto counted = count_steps_of_finished(database_, events);
  for (const RunId run : write_events(database_, events, std::nullopt, counted).outdated) derived_.forget(run);
}

void FollowStore::adopt_all() {
  database_.execute("DELETE FROM followed");
}

void FollowStore::own(RunId run, const ProcessIdentity& owner) {
  Statement update(database_, "UPDATE runs SET owner_pid = ?, owner_start = ?, owner_boot = ? WHERE id = ?");
  bind_owner(update, owner).bind(run).run();
}

void FollowStore::disown(RunId run) {
  database_.run("UPDATE runs SET owner_pid = NULL, owner_start = NULL, owner_boot = NULL WHERE id = ?", run);
}

void FollowStore::complete_steps(RunId run, std::span<const StepRecord> steps, Completion how) {
  stepladder::complete_steps(database_, run, steps, how);
  derived_.forget(run);
}

}  // namespace stepladder
