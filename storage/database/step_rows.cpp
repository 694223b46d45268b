#include "storage/database/step_rows.h"

#include <algorithm>
#include <string>

#include "storage/database/column_values.h"

namespace stepladder {
namespace {

constexpr std::int64_t rows_at_once = 16'384;

// Binds the values of a statement that begins with run and step.
void bind_step(Statement& row, RunId run, const StepRecord& step) {
  row.bind(run).bind(step.step).bind(step.loss).bind(step.val_loss).bind(step.dt_ms).bind(known(step.tokens));
  row.bind(step.lr).bind(step.grad_norm).bind(step.at);
  row.bind(nan_bit(step.loss, 0) | nan_bit(step.val_loss, 1) | nan_bit(step.grad_norm, 2));
}

// The columns that read_step reads, for use after SELECT.
const std::string step_columns = "step, loss, val_loss, dt_ms, tokens, lr, grad_norm, at, nan_mask";

// What read_parts reads, to follow step_columns.
const std::string part_columns = ", data_ms, forward_ms, backward_ms, optimizer_ms, communication_ms";

StepParts read_parts(const Statement& row) {
  return {row.real(9), row.real(10), row.real(11), row.real(12), row.real(13)};
}

StepRecord read_step(const Statement& row, RunId run) {
  const std::int64_t nan_mask = row.integer(8);
  return {.run = run,
          .step = row.integer(0),
          .loss = real_or_nan(row, 1, nan_mask, 0),
          .val_loss = real_or_nan(row, 2, nan_mask, 1),
          .dt_ms = row.real(3),
          .tokens = row.integer(4),
          .lr = row.real(5),
          .grad_norm = real_or_nan(row, 6, nan_mask, 2),
          .at = row.real(7)};
}

// Appends rows after the existing ones, many to a statement: each statement costs as much as the row itself.
void insert_new_steps(Database& database, RunId run, std::span<const StepRecord> steps) {
  constexpr std::size_t at_once = 32;
  const auto sql = [](std::size_t rows) {
    std::string text =
        "INSERT INTO steps (run_id, step, attempt, loss, val_loss, dt_ms, tokens, lr, grad_norm, at, "
        "nan_mask) VALUES ";
    for (std::size_t i = 0; i < rows; ++i) text += i == 0 ? "(?,?,1,?,?,?,?,?,?,?,?)" : ",(?,?,1,?,?,?,?,?,?,?,?)";
    return text;
  };
  const std::string full = sql(at_once);
  while (!steps.empty()) {
    const std::size_t rows = std::min(at_once, steps.size());
    Statement insert(database, rows == at_once ? full : sql(rows));
    for (const StepRecord& step : steps.first(rows)) {
      bind_step(insert, run, step);
    }
    insert.run();
    steps = steps.subspan(rows);
  }
}

}  // namespace

void insert_step(Database& database, RunId run, const StepRecord& step) {
  Statement insert(database,
                   "INSERT INTO steps (run_id, step, attempt, loss, val_loss, dt_ms, tokens, lr, grad_norm, at, "
                   "nan_mask, data_ms, forward_ms, backward_ms, optimizer_ms, communication_ms) VALUES (?1, ?2, "
                   "(SELECT coalesce(max(attempt), 0) + 1 FROM steps WHERE run_id = ?1 AND step = ?2), ?3, ?4, ?5, ?6, "
                   "?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)");
  bind_step(insert, run, step);
  insert.bind(step.parts.data_ms).bind(step.parts.forward_ms).bind(step.parts.backward_ms);
  insert.bind(step.parts.optimizer_ms).bind(step.parts.communication_ms);
  insert.run();
}

void insert_steps(Database& database, RunId run, std::span<const StepRecord> steps) {
  if (steps.empty()) return;
  Statement last(database, "SELECT max(step) FROM steps WHERE run_id = ?");
  last.bind(run);
  const bool is_first = !last.step() || last.is_null(0);
  const auto goes_back = [](const StepRecord& a, const StepRecord& b) { return a.step >= b.step; };
  const bool ascends = std::adjacent_find(steps.begin(), steps.end(), goes_back) == steps.end();
  if (ascends && (is_first || steps.front().step > last.integer(0))) return insert_new_steps(database, run, steps);
  // Some exist already, and the newer ones count.
  Statement insert(database,
                   "INSERT OR IGNORE INTO steps (run_id, step, attempt, loss, val_loss, dt_ms, tokens, lr, grad_norm, "
                   "at, nan_mask) VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const StepRecord& step : steps) {
    bind_step(insert, run, step);
    insert.run();
    if (database.changes() == 0) insert_step(database, run, step);
  }
}

bool StepReader::read(std::vector<Row>& rows) {
  rows.clear();
  const bool with_parts = parts_ == Parts::read;
  const std::string columns = step_columns + (with_parts ? part_columns : "");
  for (std::int64_t limit = rows_at_once; !done_ && rows.empty(); limit *= 2) {
    // In the order of attempts, so that the newest of each step is last.
    Statement found(
        database_,
        "SELECT " + columns + " FROM steps WHERE run_id = ? AND step BETWEEN ? AND ? ORDER BY step, attempt LIMIT ?");
    found.bind(run_).bind(range_.first).bind(range_.last).bind(limit);
    std::int64_t read = 0;
    for (; found.step(); ++read) {
      const std::int64_t step = found.integer(0);
      const bool repeated = !rows.empty() && rows.back().step.step == step;
      if (!repeated) rows.emplace_back();
      rows.back() = {.step = read_step(found, run_), .repeated = repeated};
      if (with_parts) rows.back().step.parts = read_parts(found);
    }
    done_ = read < limit;
    if (done_) break;
    // More attempts at the last step may follow, so it is left for the next call.
    range_.first = rows.back().step.step;
    rows.pop_back();
  }
  return !rows.empty();
}

Series read_series(Database& database, RunId run, StepRange range) {
  Series series;
  StepReader reader(database, run, range);
  for (std::vector<StepReader::Row> rows; reader.read(rows);)
    for (const StepReader::Row& row : rows) series.append(row.step);
  return series;
}

StepParts read_mean_parts(Database& database, RunId run, std::int64_t warmup_steps) {
  {
    // Trainings record them for every step, logs for none, so a thousand steps of a long run show which it is.
    Statement any(database,
                  "SELECT count(coalesce(data_ms, forward_ms, backward_ms, optimizer_ms, communication_ms)) FROM "
                  "(SELECT * FROM steps WHERE run_id = ? ORDER BY step DESC LIMIT 1000)");
    any.bind(run);
    if (!any.step() || any.integer(0) == 0) return {};
  }
  // By position, as warm-up is counted: a resumed run's first steps are not its lowest numbers.
  Statement rows(database,
                 "SELECT avg(data_ms), avg(forward_ms), avg(backward_ms), avg(optimizer_ms), avg(communication_ms) "
                 "FROM latest_steps WHERE run_id = ?1 AND step > coalesce((SELECT step FROM latest_steps "
                 "WHERE run_id = ?1 ORDER BY step LIMIT 1 OFFSET ?2 - 1), 0)");
  rows.bind(run).bind(warmup_steps);
  if (!rows.step()) return {};
  return {rows.real(0), rows.real(1), rows.real(2), rows.real(3), rows.real(4)};
}

}  // namespace stepladder
