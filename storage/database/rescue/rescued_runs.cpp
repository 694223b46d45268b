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

// The different values of a column of numbers, each looked up by the key, so that a table of many rows isn't read.
void add_values(Database& database, const std::string& table, const std::string& column, std::int64_t above,
                std::set<std::int64_t>& values) {
  const std::string next = "SELECT min(" + column + ") FROM " + table + " WHERE " + column + " > ?";
  for (auto value = database.find(next, above); value; value = database.find(next, *value)) values.insert(*value);
}

// Adds a row for each run whose row is lost; the row says so. Returns these runs.
std::set<RunId> add_lost_runs(Database& database) {
  std::set<RunId> lost;
  const auto tables_of_runs = database.texts(
      "SELECT name FROM sqlite_master AS entry WHERE type = 'table' AND EXISTS (SELECT 1 FROM "
      "pragma_table_info(entry.name) WHERE name = 'run_id') ORDER BY rowid");
  for (const std::string& table : tables_of_runs) add_values(database, table, "run_id", 0, lost);
  for (const RunId run : database.integers("SELECT id FROM runs")) lost.erase(run);
  for (const RunId run : lost) {
    database.run(
        "INSERT INTO runs (id, name, status, reason, created_at) VALUES (?1, ?2, 'interrupted', "
        "'rescued from a damaged file, in which its name, settings and status are lost', "
        "coalesce((SELECT min(at) FROM steps WHERE run_id = ?1), ?3))",
        run, fmt::format("run {} (rescued)", run), unix_now());
  }
  return lost;
}

// Adds a run of their own for values whose metric's row is lost, since their run is unknown.
void add_lost_metrics(Database& database, std::set<RunId>& lost_runs) {
  if (!database.has("SELECT 1 FROM sqlite_master WHERE name = 'metric_values'")) return;
  std::set<std::int64_t> lost;
  for (const char* const table : {"metric_values", "superseded_metric_values"})
    add_values(database, table, "metric_id", std::numeric_limits<std::int64_t>::min(), lost);
  for (const std::int64_t metric : database.integers("SELECT id FROM metrics")) lost.erase(metric);
  if (lost.empty()) return;
  database.run(
      "INSERT INTO runs (name, status, reason, created_at) VALUES ('metrics (rescued)', 'interrupted', "
      "'rescued from a damaged file, in which the names and runs of these metrics are lost', ?)",
      unix_now());
  const RunId id = database.last_insert_id();
  lost_runs.insert(id);
  for (const std::int64_t metric : lost) {
    database.insert("INTO metrics", "id, run_id, name", metric, id, fmt::format("metric {} (rescued)", metric));
  }
}

void repair_references(Database& database) {
  for (const std::int64_t ladder : database.integers("SELECT DISTINCT ladder_id FROM runs WHERE ladder_id IS NOT NULL "
                                                     "AND ladder_id NOT IN (SELECT id FROM ladders)")) {
    database.run(
        "INSERT INTO ladders (id, name, notes, created_at) VALUES (?1, ?2, 'Rescued from a damaged file, in "
        "which its name is lost.', (SELECT min(created_at) FROM runs WHERE ladder_id = ?1))",
        ladder, fmt::format("ladder {} (rescued)", ladder));
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
  return std::ranges::any_of(losses.gaps, [&](const StepGap& gap) {
    const bool is_behind = !gap.before || gap.before->run <= run;
    const bool is_before = !gap.after || gap.after->run > run;
    return is_behind && is_before;
  });
}

// Steps that are missing between the first and the last: the usual distance is that of most neighbours.
std::int64_t holes_of(Database& database, RunId run) {
  const std::string distances =
      "(SELECT step - lag(step) OVER (ORDER BY step) AS distance FROM steps WHERE run_id = ?)";
  const std::int64_t most_frequent =
      database.integer("SELECT distance FROM " + distances +
                           " WHERE distance IS NOT NULL GROUP BY distance ORDER BY count(*) DESC, distance LIMIT 1",
                       run);
  const std::int64_t usual = std::max<std::int64_t>(most_frequent, 1);
  return database.integer("SELECT sum(distance / ? - 1) FROM " + distances + " WHERE distance > ?", usual, run, usual);
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

void repair_rescued_runs(Database& database, const StepLosses& losses, RescueReport& report) {
  database.execute("PRAGMA foreign_keys = OFF");
  Transaction whole(database);
  std::set<RunId> lost_rows = add_lost_runs(database);
  add_lost_metrics(database, lost_rows);
  repair_references(database);
  for (SavedRun& run : saved_runs(database, lost_rows)) {
    ++report.runs_saved;
    report.steps_saved += run.damage.steps;
    count_missing_steps(database, losses, run);
    const bool lacks_steps = run.damage.missing_steps > 0 || run.damage.more_may_be_missing;
    if (!lacks_steps && !run.damage.row_is_lost) continue;
    if (lacks_steps) {
      database.run(
          "UPDATE runs SET status = CASE status WHEN 'finished' THEN 'interrupted' ELSE status END, "
          "reason = ? || coalesce('; ' || reason, '') WHERE id = ?",
          "rescued from a damaged file: " + loss_text(run.damage), run.damage.id);
    }
    report.runs.push_back(std::move(run.damage));
  }
  whole.commit();
  require_sound(database);
}

}  // namespace stepladder
