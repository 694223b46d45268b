// Rows of tries. Texts of a file are cut, and numbers that no program of ours writes are refused by the readers above.
#include "storage/database/tries/try_store.h"

#include "storage/bounded_text.h"
#include "storage/database/column_values.h"
#include "storage/database/database.h"

namespace stepladder {
namespace {

constexpr const char* series_columns = "SELECT ladder_id, checkout, plan, begun_at, ended_at, answer FROM try_series ";

TrySeries series_of(const Statement& row) {
  return {.ladder = row.integer(0),
          .checkout = bounded(row.text(1), longest_line),
          .plan = row.text(2),
          .begun_at = row.real(3),
          .ended_at = row.real(4),
          .answer = row.text(5)};
}

}  // namespace

std::vector<TrySeries> TryStore::all() {
  Statement rows(database_, std::string(series_columns) + "ORDER BY ladder_id");
  std::vector<TrySeries> all;
  while (rows.step()) all.push_back(series_of(rows));
  return all;
}

std::optional<TrySeries> TryStore::latest_of(const std::string& checkout) {
  Statement row(database_, std::string(series_columns) +
                               "WHERE checkout = ? ORDER BY (SELECT verdict FROM tries WHERE tries.ladder_id = "
                               "try_series.ladder_id AND number = 0) IS 'failed', ladder_id DESC LIMIT 1");
  row.bind(checkout);
  return row.step() ? std::optional(series_of(row)) : std::nullopt;
}

std::vector<Try> TryStore::tries(LadderId ladder) {
  Statement rows(database_,
                 "SELECT number, message, parent, tree, commit_hash, patch, patch_bytes, begun_at, ended_at, verdict, "
                 "answer FROM tries WHERE ladder_id = ? ORDER BY number");
  rows.bind(ladder);
  std::vector<Try> tries;
  while (rows.step())
    tries.push_back({.number = rows.integer(0),
                     .message = bounded(rows.text(1), longest_line),
                     .parent = rows.integer(2),
                     .tree = bounded(rows.text(3), longest_name),
                     .commit = bounded(rows.text(4), longest_name),
                     .patch = rows.text(5),
                     .patch_bytes = rows.integer(6),
                     .begun_at = rows.real(7),
                     .ended_at = rows.real(8),
                     .verdict = bounded(rows.text(9), longest_name),
                     .answer = rows.text(10)});
  return tries;
}

std::map<LadderId, std::set<std::int64_t>> TryStore::kept() {
  Statement rows(database_, "SELECT ladder_id, number FROM tries WHERE verdict = 'kept' OR number = 0");
  std::map<LadderId, std::set<std::int64_t>> kept;
  while (rows.step()) kept[rows.integer(0)].insert(rows.integer(1));
  return kept;
}

std::vector<TryRun> TryStore::runs(LadderId ladder) {
  Statement rows(
      database_,
      "SELECT place, during, state, run_id, value, others, wall_s, exit_status FROM try_runs WHERE ladder_id "
      "= ? ORDER BY place");
  rows.bind(ladder);
  std::vector<TryRun> runs;
  while (rows.step())
    runs.push_back({.place = rows.integer(0),
                    .during = rows.integer(1),
                    .state = rows.integer(2),
                    .run = rows.integer(3),
                    .value = rows.real(4),
                    .others = rows.text(5),
                    .wall_s = rows.real(6),
                    .exit_status = static_cast<int>(rows.integer(7))});
  return runs;
}

void TryStore::save(const TrySeries& series) {
  Statement put(database_,
                "INSERT OR REPLACE INTO try_series (ladder_id, checkout, plan, begun_at, ended_at, answer) VALUES (?, "
                "?, ?, ?, ?, ?)");
  put.bind(series.ladder).bind(series.checkout).bind(series.plan).bind(series.begun_at);
  put.bind(series.ended_at).bind(series.answer).run();
}

void TryStore::save(LadderId ladder, const Try& it) {
  Statement put(database_,
                "INSERT OR REPLACE INTO tries (ladder_id, number, message, parent, tree, commit_hash, patch, "
                "patch_bytes, begun_at, ended_at, verdict, answer) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  put.bind(ladder).bind(it.number).bind(bounded(it.message, longest_line)).bind(it.parent).bind(it.tree);
  put.bind(it.commit).bind(it.patch).bind(it.patch_bytes).bind(it.begun_at).bind(it.ended_at);
  put.bind(it.verdict).bind(it.answer).run();
}

void TryStore::add(LadderId ladder, const TryRun& run) {
  Statement insert(database_,
                   "INSERT INTO try_runs (ladder_id, place, during, state, run_id, value, others, wall_s, exit_status) "
                   "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.bind(ladder).bind(run.place).bind(run.during).bind(run.state).bind(known(run.run)).bind(run.value);
  insert.bind(run.others).bind(run.wall_s).bind(run.exit_status).run();
}

}  // namespace stepladder
