#include "storage/database/step_move.h"

#include <vector>

#include "storage/database/column_values.h"
#include "storage/database/slices.h"
#include "storage/database/step_rows.h"
#include "storage/records.h"

namespace stepladder {
namespace {

constexpr std::int64_t rows_moved_at_once = 256;

// Rows that name a run that isn't there, as other programs may have left them, are moved too.
class WithoutForeignKeys {
 public:
  explicit WithoutForeignKeys(Database& database) : database_(database) {
    database_.execute("PRAGMA foreign_keys = OFF");
  }
  ~WithoutForeignKeys() {
    try {
      database_.execute("PRAGMA foreign_keys = ON");
    } catch (const StorageError&) {  // the connection is of no use any more, and the next statement says why
    }
  }
  WithoutForeignKeys(const WithoutForeignKeys&) = delete;
  WithoutForeignKeys& operator=(const WithoutForeignKeys&) = delete;

 private:
  Database& database_;
};

StepRecord read_old_row(const Statement& row) {
  const std::int64_t nan_mask = row.integer(10);
  return {.run = row.integer(0),
          .step = row.integer(1),
          .loss = real_or_nan(row, 3, nan_mask, 0),
          .val_loss = real_or_nan(row, 4, nan_mask, 1),
          .dt_ms = row.real(5),
          .tokens = row.integer(6),
          .lr = row.real(7),
          .grad_norm = real_or_nan(row, 8, nan_mask, 2),
          .at = row.real(9),
          .parts = {row.real(11), row.real(12), row.real(13), row.real(14), row.real(15)}};
}

// Moves the first rows of the old table, all of one run. Returns how many.
std::size_t move_some(Database& database) {
  std::vector<StepRecord> steps;
  std::int64_t last_attempt = 0;
  {
    Statement rows(database,
                   "SELECT run_id, step, attempt, loss, val_loss, dt_ms, tokens, lr, grad_norm, at, nan_mask, data_ms, "
                   "forward_ms, backward_ms, optimizer_ms, communication_ms FROM steps_to_move "
                   "ORDER BY run_id, step, attempt LIMIT ?",
                   rows_moved_at_once);
    while (rows.step() && (steps.empty() || steps.front().run == rows.integer(0))) {
      steps.push_back(read_old_row(rows));
      last_attempt = rows.integer(2);
    }
  }
  if (steps.empty()) return 0;
  insert_steps(database, steps.front().run, steps);
  database.run("DELETE FROM steps_to_move WHERE run_id = ?1 AND step <= ?2 AND (step < ?2 OR attempt <= ?3)",
               steps.front().run, steps.back().step, last_attempt);
  if (static_cast<std::size_t>(database.changes()) != steps.size())
    throw StorageError(database.file().string() + " is damaged: its old steps are not in order");
  return steps.size();
}

}  // namespace

bool has_steps_to_move(Database& database) {
  return database.integer("SELECT count(*) FROM sqlite_master WHERE name = 'steps_to_move'") > 0 &&
         database.integer("SELECT EXISTS (SELECT 1 FROM steps_to_move)") > 0;
}

void move_steps(Database& database) {
  const WithoutForeignKeys moving(database);
  // Another process may be moving them too, and be done first.
  in_slices(database, [&] { return has_steps_to_move(database) && move_some(database) > 0; });
}

}  // namespace stepladder
