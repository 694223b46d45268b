// Makes a rescued file consistent: rows for runs and metrics that are only referred to, and honest statuses for runs
// that lack steps. Missing steps are counted by the run's summary if it was saved, else by planned steps (launched
// runs) or by holes in the numbers (imported ones).
#include "storage/database/rescue/rescued_runs.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "storage/bounded_text.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

std::set<std::int64_t> numbers(Database& database, const std::string& sql) {
  std::set<std::int64_t> found;
  Statement rows(database, sql);
  while (rows.step()) found.insert(rows.integer(0));
  return found;
}

// Tables with a column `run_id`.
std::vector<std::string> tables_of_runs(Database& database) {
  std::vector<std::string> tables;
  Statement rows(database,
                 "SELECT name FROM sqlite_master AS entry WHERE type = 'table' AND EXISTS (SELECT 1 FROM "
                 "pragma_table_info(entry.name) WHERE name = 'run_id') ORDER BY rowid");
  while (rows.step()) tables.push_back(rows.text(0));
  return tables;
}

// Adds a row for each run whose row is lost; the row says so. Returns these runs.
std::set<RunId> add_lost_runs(Database& database) {
  std::set<RunId> lost;
  for (const std::string& table : tables_of_runs(database)) {
    // Each run is looked up by the key, so that a table of many rows isn't read.
    const std::string next = "SELECT min(run_id) FROM " + table + " WHERE run_id > ?";
    for (std::int64_t run = 0;;) {
      Statement row(database, next);
      row.bind(run);
      if (!row.step() || row.is_null(0)) break;
      run = row.integer(0);
      lost.insert(run);
    }
  }
  for (const RunId run : numbers(database, "SELECT id FROM runs")) lost.erase(run);
  for (const RunId run : lost) {
    Statement insert(database,
                     "INSERT INTO runs (id, name, status, reason, created_at) VALUES (?1, ?2, 'interrupted', "
                     "'rescued from a damaged file, in which its name, settings and status are lost', "
                     "coalesce((SELECT min(at) FROM steps WHERE run_id = ?1), ?3))");
    insert.bind(run).bind(fmt::format("run {} (rescued)", run)).bind(unix_now()).run();
  }
  return lost;
}

// Adds a run of their own for values whose metric's row is lost, since their run is unknown.
void add_lost_metrics(Database& database, std::set<RunId>& lost_runs) {
  if (numbers(database, "SELECT 1 FROM sqlite_master WHERE name = 'metric_values'").empty()) return;
  std::set<std::int64_t> lost;
  for (const char* const table : {"metric_values", "superseded_metric_values"}) {
    const std::string next = "SELECT min(metric_id) FROM " + std::string(table) + " WHERE metric_id > ?";
    for (std::int64_t metric = std::numeric_limits<std::int64_t>::min();;) {
      Statement row(database, next);
      row.bind(metric);
      if (!row.step() || row.is_null(0)) break;
      lost.insert(metric = row.integer(0));
    }
  }
  for (const std::int64_t metric : numbers(database, "SELECT id FROM metrics")) lost.erase(metric);
  if (lost.empty()) return;
  Statement run(database,
                "INSERT INTO runs (name, status, reason, created_at) VALUES ('metrics (rescued)', 'interrupted', "
                "'rescued from a damaged file, in which the names and runs of these metrics are lost', ?)");
  run.bind(unix_now()).run();
  const RunId id = database.last_insert_id();
  lost_runs.insert(id);
  for (const std::int64_t metric : lost) {
    Statement insert(database, "INSERT INTO metrics (id, run_id, name) VALUES (?, ?, ?)");
    insert.bind(metric).bind(id).bind(fmt::format("metric {} (rescued)", metric)).run();
  }
}

void settle_references(Database& database) {
  for (const std::int64_t ladder : numbers(
           database,
           "SELECT ladder_id FROM runs WHERE ladder_id IS NOT NULL AND ladder_id NOT IN (SELECT id FROM ladders)")) {
    Statement insert(
        database,
        "INSERT INTO ladders (id, name, notes, created_at) VALUES (?1, ?2, 'Rescued from a damaged file, in "
        "which its name is lost.', (SELECT min(created_at) FROM runs WHERE ladder_id = ?1))");
    insert.bind(ladder).bind(fmt::format("ladder {} (rescued)", ladder)).run();
  }
  database.execute(
      "UPDATE runs SET parent_id = NULL WHERE parent_id NOT IN (SELECT id FROM runs);"
      "DELETE FROM operators WHERE run_id NOT IN (SELECT run_id FROM profiles);"
      "DELETE FROM trace_steps WHERE trace_id NOT IN (SELECT id FROM traces);"
      "DELETE FROM trace_kinds WHERE trace_id NOT IN (SELECT id FROM traces);"
      "DELETE FROM trace_operators WHERE trace_id NOT IN (SELECT id FROM traces);"
      "DELETE FROM trace_anatomy WHERE trace_id NOT IN (SELECT id FROM traces);"
      "DELETE FROM trace_slices WHERE trace_id NOT IN (SELECT id FROM traces);"
      "DELETE FROM pass_calls WHERE pass_id NOT IN (SELECT id FROM passes);"
      "DELETE FROM try_series WHERE ladder_id NOT IN (SELECT id FROM ladders);"
      "DELETE FROM tries WHERE ladder_id NOT IN (SELECT id FROM ladders);"
      "DELETE FROM try_runs WHERE ladder_id NOT IN (SELECT id FROM ladders);"
      "UPDATE try_runs SET run_id = NULL WHERE run_id NOT IN (SELECT id FROM runs)");
}

// A run that lacks an unknown number of steps at its end, or all of them.
bool end_may_be_missing(const StepLosses& losses, RunId run) {
  return std::any_of(losses.gaps.begin(), losses.gaps.end(), [&](const StepGap& gap) {
    const bool is_behind = !gap.before || gap.before->run <= run;
    const bool is_before = !gap.after || gap.after->run > run;
    return is_behind && is_before;
  });
}

// Steps that are missing between the first and the last: the usual distance is that of most neighbours.
std::int64_t holes_of(Database& database, RunId run) {
  const std::string distances =
      "(SELECT step - lag(step) OVER (ORDER BY step) AS distance FROM steps WHERE run_id = ?)";
  std::int64_t usual = 1;
  {
    Statement row(database,
                  "SELECT distance FROM " + distances +
                      " WHERE distance IS NOT NULL GROUP BY distance ORDER BY count(*) DESC, distance LIMIT 1");
    row.bind(run);
    if (row.step()) usual = std::max<std::int64_t>(row.integer(0), 1);
  }
  Statement row(database, "SELECT coalesce(sum(distance / ? - 1), 0) FROM " + distances + " WHERE distance > ?");
  row.bind(usual).bind(run).bind(usual);
  return row.step() ? row.integer(0) : 0;
}

struct SavedRun {
  DamagedRun damage;
  bool is_launched = false;  // counts its steps from 1, or from the fork on, one by one
  bool is_finished = false;
  std::int64_t forked_at = 0;
  std::int64_t planned_steps = 0;
  std::int64_t last_step = 0;
};

void count_missing_steps(Database& database, const StepLosses& losses, SavedRun& run) {
  DamagedRun& damage = run.damage;
  const auto summary = losses.steps_by_summary.find(damage.id);
  if (summary != losses.steps_by_summary.end() && !damage.row_is_lost) {
    damage.missing_steps = std::max<std::int64_t>(summary->second - damage.steps, 0);
    return;
  }
  if (losses.gaps.empty()) return;
  damage.more_may_be_missing = end_may_be_missing(losses, damage.id);
  if (run.is_launched) {
    const std::int64_t last = run.is_finished ? std::max(run.last_step, run.planned_steps) : run.last_step;
    damage.missing_steps = std::max<std::int64_t>(last - run.forked_at - damage.steps, 0);
    if (run.is_finished) damage.more_may_be_missing = false;
  } else {
    damage.missing_steps = holes_of(database, damage.id);
  }
}

std::string loss_text(const DamagedRun& run) {
  if (run.missing_steps == 0) return "steps at its end may be missing";
  return fmt::format("{} of its {} {} missing{}", run.missing_steps, plural(run.steps + run.missing_steps, "step"),
                     run.missing_steps == 1 ? "is" : "are",
                     run.more_may_be_missing ? ", and more may be at its end" : "");
}

std::vector<SavedRun> saved_runs(Database& database, const std::set<RunId>& lost_rows) {
  std::vector<SavedRun> runs;
  Statement rows(database,
                 "SELECT id, name, source, status, coalesce(forked_at_step, 0), coalesce(planned_steps, 0), "
                 "(SELECT count(*) FROM steps WHERE run_id = runs.id), "
                 "(SELECT coalesce(max(step), 0) FROM steps WHERE run_id = runs.id) FROM runs ORDER BY id");
  while (rows.step()) {
    const RunId id = rows.integer(0);
    runs.push_back({.damage = {.id = id,
                               .name = bounded(rows.text(1), longest_name),
                               .steps = rows.integer(6),
                               .row_is_lost = lost_rows.contains(id)},
                    .is_launched = rows.text(2) == "launched",
                    .is_finished = rows.text(3) == "finished",
                    .forked_at = rows.integer(4),
                    .planned_steps = rows.integer(5),
                    .last_step = rows.integer(7)});
  }
  return runs;
}

void require_sound(Database& database) {
  Statement broken(database, "PRAGMA foreign_key_check");
  if (broken.step())
    throw StorageError(database.file().string() + " could not be made consistent: a row of " + broken.text(0) +
                       " refers to one that is lost");
  if (const std::string found = database.text("PRAGMA integrity_check"); found != "ok")
    throw StorageError(database.file().string() + " was not written as it should: " + found);
}

}  // namespace

void settle_rescued_runs(Database& database, const StepLosses& losses, RescueReport& report) {
  database.execute("PRAGMA foreign_keys = OFF");
  Transaction whole(database);
  std::set<RunId> lost_rows = add_lost_runs(database);
  add_lost_metrics(database, lost_rows);
  settle_references(database);
  for (SavedRun& run : saved_runs(database, lost_rows)) {
    ++report.runs_saved;
    report.steps_saved += run.damage.steps;
    count_missing_steps(database, losses, run);
    const bool lacks_steps = run.damage.missing_steps > 0 || run.damage.more_may_be_missing;
    if (!lacks_steps && !run.damage.row_is_lost) continue;
    if (lacks_steps) {
      Statement update(database,
                       "UPDATE runs SET status = CASE status WHEN 'finished' THEN 'interrupted' ELSE status END, "
                       "reason = ? || coalesce('; ' || reason, '') WHERE id = ?");
      update.bind("rescued from a damaged file: " + loss_text(run.damage)).bind(run.damage.id).run();
    }
    report.runs.push_back(std::move(run.damage));
  }
  whole.commit();
  require_sound(database);
}

}  // namespace stepladder
