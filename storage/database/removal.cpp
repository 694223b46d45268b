// Deletes runs table by table in slices of a few milliseconds. A new table with many rows for each run belongs in
// tables_with_many_rows; the others must have ON DELETE CASCADE. A run's own row is deleted last, so an interrupted
// deletion can be continued.
#include "storage/database/removal.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "storage/database/column_values.h"
#include "storage/database/process.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

// Tables with many or large rows for each run: their keys after run_id, and how many rows can be deleted in a few
// milliseconds. The smaller tables follow the row in `runs` (ON DELETE CASCADE).
struct RowsOfRuns {
  std::string table;
  std::string keys;
  std::int64_t at_once;
  bool is_of_metrics = false;  // then the rows of one metric after the other, by metric_id
};
const RowsOfRuns tables_with_many_rows[] = {
    {"steps", "step", 2000},
    {"superseded_steps", "step", 2000},
    {"nan_steps", "step", 2000},
    {"lanes", "at", 2000},
    {"samples", "step", 100},
    {"console", "part", 100},
    {"operators", "part, name", 500},
    {"overview_chunks", "quantity, level, last_step", 4},
    {"metric_values", "step", 2000, true},
    {"superseded_metric_values", "step", 2000, true},
    {"metric_overviews", "level, last_step", 4, true},
};
constexpr int pages_to_give_back_at_once = 100;

// The value of the key's first column: the run, or its first metric that has any rows.
std::optional<std::int64_t> owner_of_rows(Database& database, const RowsOfRuns& rows, RunId run) {
  if (!rows.is_of_metrics) return run;
  return database.find("SELECT id FROM metrics WHERE run_id = ? AND EXISTS (SELECT 1 FROM " + rows.table +
                           " WHERE metric_id = metrics.id) LIMIT 1",
                       run);
}

// The first rows by their key. Returns whether there may be more.
bool delete_first_rows(Database& database, const RowsOfRuns& rows, RunId run) {
  const std::optional<std::int64_t> owner = owner_of_rows(database, rows, run);
  if (!owner) return false;
  const std::string of_owner = rows.table + (rows.is_of_metrics ? " WHERE metric_id = ?1" : " WHERE run_id = ?1");
  database.run(fmt::format("DELETE FROM {} AND ({}) <= (SELECT {} FROM {} ORDER BY {} LIMIT 1 OFFSET ?2)", of_owner,
                           rows.keys, rows.keys, of_owner, rows.keys),
               *owner, rows.at_once);
  if (database.changes() > 0) return true;
  database.run("DELETE FROM " + of_owner, *owner);
  return rows.is_of_metrics;
}

void delete_row_of(Database& database, RunId run) {
  const std::int64_t ladder = database.integer("SELECT ladder_id FROM runs WHERE id = ?", run);
  database.run("DELETE FROM runs WHERE id = ?", run);
  database.run(
      "DELETE FROM ladders WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM runs WHERE ladder_id = ?1) "
      "AND NOT EXISTS (SELECT 1 FROM try_series WHERE ladder_id = ?1)",
      ladder);
}

std::vector<RunId> being_deleted_here(Database& database) {
  const ProcessIdentity own = this_process();
  return database.integers(
      "SELECT id FROM runs WHERE hidden <> 0 AND hidden = ? AND owner_pid = ? AND owner_start IS ? ORDER BY id",
      static_cast<int>(Hidden::being_deleted), own.pid, known(own.start));
}

}  // namespace

void delete_rows(Database& database, const std::string& table, RunId run) {
  const auto rows = std::find_if(std::begin(tables_with_many_rows), std::end(tables_with_many_rows),
                                 [&](const RowsOfRuns& each) { return each.table == table; });
  in_slices(database, [&] { return delete_first_rows(database, *rows, run); });
}

bool delete_runs(Database& database, std::span<const RunId> hidden_runs, const KeepDeleting& keep_deleting) {
  std::vector<RowsOfRuns> tables;
  for (const RowsOfRuns& rows : tables_with_many_rows)
    if (database.has("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", rows.table))
      tables.push_back(rows);
  std::size_t run = 0;
  std::size_t table = 0;
  in_slices(database, [&] {
    if (run == hidden_runs.size()) return false;
    if (keep_deleting && !keep_deleting(hidden_runs.size() - run)) return false;
    if (table < tables.size()) {
      if (!delete_first_rows(database, tables[table], hidden_runs[run])) ++table;
    } else {
      delete_row_of(database, hidden_runs[run]);
      ++run;
      table = 0;
    }
    return true;
  });
  return run == hidden_runs.size();
}

void delete_own_hidden_runs(Database& database, const KeepDeleting& keep_deleting) {
  const std::vector<RunId> runs = being_deleted_here(database);
  if (!runs.empty() && delete_runs(database, runs, keep_deleting)) give_back_space(database);
}

void give_back_space(Database& database) {
  constexpr int incremental = 2;
  if (database.in_transaction() || database.integer("PRAGMA auto_vacuum") != incremental) return;
  const auto free_pages = [&] { return database.integer("PRAGMA freelist_count"); };
  if (free_pages() == 0) return;
  in_slices(database, [&, left = free_pages()]() mutable {
    database.execute(fmt::format("PRAGMA incremental_vacuum({})", pages_to_give_back_at_once));
    const std::int64_t before = std::exchange(left, free_pages());
    return left > 0 && left < before;
  });
  // The file itself becomes smaller once the log's pages are in it.
  database.execute("PRAGMA wal_checkpoint(PASSIVE)");
}

}  // namespace stepladder
