// Rows of tries. Texts of a file are cut, and numbers that no program of ours writes are refused by the readers above.
#include "storage/database/tries/try_store.h"

#include "storage/bounded_text.h"
#include "storage/database/column_values.h"
#include "storage/database/database.h"

namespace stepladder {
namespace {

constexpr const char* columns_of_series =
    "SELECT ladder_id, checkout, plan, begun_at, ended_at, answer FROM try_series ";

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
  return read_all(Statement(database_, std::string(columns_of_series) + "ORDER BY ladder_id"), series_of);
}

std::optional<TrySeries> TryStore::latest_of(const std::string& checkout) {
  Statement row(database_,
                std::string(columns_of_series) +
                    "WHERE checkout = ? ORDER BY (SELECT verdict FROM tries WHERE tries.ladder_id = "
                    "try_series.ladder_id AND number = 0) IS 'failed', ladder_id DESC LIMIT 1",
                checkout);
  return row.step() ? std::optional(series_of(row)) : std::nullopt;
}

std::vector<Try> TryStore::tries(LadderId ladder) {
  return read_all(
      Statement(database_,
                "SELECT number, message, parent, tree, commit_hash, patch, patch_bytes, begun_at, ended_at, verdict, "
                "answer FROM tries WHERE ladder_id = ? ORDER BY number",
                ladder),
      [](const Statement& row) {
        return Try{.number = row.integer(0),
                   .message = bounded(row.text(1), longest_line),
                   .parent = row.integer(2),
                   .tree = bounded(row.text(3), longest_name),
                   .commit = bounded(row.text(4), longest_name),
                   .patch = row.text(5),
                   .patch_bytes = row.integer(6),
                   .begun_at = row.real(7),
                   .ended_at = row.real(8),
                   .verdict = bounded(row.text(9), longest_name),
                   .answer = row.text(10)};
      });
}

std::map<LadderId, std::set<std::int64_t>> TryStore::kept() {
  Statement rows(database_, "SELECT ladder_id, number FROM tries WHERE verdict = 'kept' OR number = 0");
  std::map<LadderId, std::set<std::int64_t>> kept;
  while (rows.step()) kept[rows.integer(0)].insert(rows.integer(1));
  return kept;
}

std::vector<TryRun> TryStore::runs(LadderId ladder) {
  return read_all(
      Statement(database_,
                "SELECT place, during, state, run_id, value, others, wall_s, exit_status FROM try_runs WHERE ladder_id "
                "= ? ORDER BY place",
                ladder),
      [](const Statement& row) {
        return TryRun{.place = row.integer(0),
                      .during = row.integer(1),
                      .state = row.integer(2),
                      .run = row.integer(3),
                      .value = row.real(4),
                      .others = row.text(5),
                      .wall_s = row.real(6),
                      .exit_status = static_cast<int>(row.integer(7))};
      });
}

void TryStore::save(const TrySeries& series) {
  database_.insert("OR REPLACE INTO try_series", "ladder_id, checkout, plan, begun_at, ended_at, answer", series.ladder,
                   series.checkout, series.plan, series.begun_at, series.ended_at, series.answer);
}

void TryStore::save(LadderId ladder, const Try& it) {
  database_.insert("OR REPLACE INTO tries",
                   "ladder_id, number, message, parent, tree, commit_hash, patch, patch_bytes, begun_at, ended_at, "
                   "verdict, answer",
                   ladder, it.number, bounded(it.message, longest_line), it.parent, it.tree, it.commit, it.patch,
                   it.patch_bytes, it.begun_at, it.ended_at, it.verdict, it.answer);
}

void TryStore::add(LadderId ladder, const TryRun& run) {
  database_.insert("INTO try_runs", "ladder_id, place, during, state, run_id, value, others, wall_s, exit_status",
                   ladder, run.place, run.during, run.state, known(run.run), run.value, run.others, run.wall_s,
                   run.exit_status);
}

void TryStore::save(const StoredTries& tries) {
  const LadderId ladder = tries.series.ladder;
  save(tries.series);
  for (const Try& it : tries.tries) save(ladder, it);
  for (const TryRun& run : tries.runs) add(ladder, run);
}

}  // namespace stepladder
