// Rows of `steps`: values scaled to integers, NaNs in a table of their own, older attempts in superseded_steps.
// all_columns, one_row, bind_step and the readers must list the same columns in the same order. New ascending steps
// take the fast path of multi-row inserts.
#include "storage/database/step_rows.h"

#include <cmath>
#include <string>

#include "storage/database/following/follow_store.h"

namespace stepladder {
namespace {

constexpr std::int64_t rows_at_once = 16'384;

// Stores a value as a whole number of a small unit, which takes two to six bytes instead of eight, if the error is at
// most 1e-8 of it (a float32 is good to 6e-8), else as a REAL in the same unit. The column's type, INTEGER, makes
// SQLite keep whole numbers as such. SQL reads the value itself from a generated column.
struct Scale {
  double units;  // in one
  double tolerance = 1e-8;
};
constexpr Scale dt_scale{1e6};
constexpr Scale lr_scale{1e12};
constexpr Scale grad_norm_scale{1e9};
constexpr Scale at_scale{1e3};
constexpr Scale part_scale{1e3, std::numeric_limits<double>::infinity()};  // always whole microseconds

double stored(double value, const Scale& scale) {
  constexpr double largest = std::numeric_limits<double>::max();
  if (!std::isfinite(value)) return value;  // NaN is NULL
  const double exact = std::clamp(value * scale.units, -largest, largest);
  const double whole = std::round(exact);
  return std::abs(whole - exact) <= scale.tolerance * std::abs(exact) ? whole : exact;
}

double read_scaled(const Statement& row, int column, const Scale& scale) {
  return row.is_null(column) ? missing : row.real(column) / scale.units;
}

// The columns that bind_step binds and a copy of a row takes.
const std::string all_columns =
    "run_id, step, loss, val_loss, dt_ns, tokens, lr_e12, grad_norm_e9, at_ms, data_us, forward_us, backward_us, "
    "optimizer_us, communication_us";
const std::string one_row = "(?,?,?,?,?,?,?,?,?,?,?,?,?,?)";

void bind_step(Statement& row, RunId run, const StepRecord& step) {
  row.bind(run).bind(step.step).bind(step.loss).bind(step.val_loss);
  row.bind(stored(step.dt_ms, dt_scale)).bind(known(step.tokens)).bind(stored(step.lr, lr_scale));
  row.bind(stored(step.grad_norm, grad_norm_scale)).bind(stored(step.at, at_scale));
  for (const double part : {step.parts.data_ms, step.parts.forward_ms, step.parts.backward_ms, step.parts.optimizer_ms,
                            step.parts.communication_ms})
    row.bind(stored(part, part_scale));
}

// The columns that read_step reads, for use after SELECT.
const std::string step_columns = "step, loss, val_loss, dt_ns, tokens, lr_e12, grad_norm_e9, at_ms";

// The columns that read_parts reads, to follow step_columns.
const std::string part_columns = ", data_us, forward_us, backward_us, optimizer_us, communication_us";

StepParts read_parts(const Statement& row) {
  const auto part = [&](int column) { return read_scaled(row, column, part_scale); };
  return {part(8), part(9), part(10), part(11), part(12)};
}

StepRecord read_step(const Statement& row, RunId run) {
  return {.run = run,
          .step = row.integer(0),  // of a StepRange
          .loss = row.real(1),
          .val_loss = row.real(2),
          .dt_ms = read_scaled(row, 3, dt_scale),
          .tokens = count_of(row, 4),
          .lr = read_scaled(row, 5, lr_scale),
          .grad_norm = read_scaled(row, 6, grad_norm_scale),
          .at = read_scaled(row, 7, at_scale)};
}

// Bits of nan_mask.
enum StepNanBit { loss_nan_bit, val_loss_nan_bit, grad_norm_nan_bit };

std::int64_t nan_mask_of(const StepRecord& step) {
  return nan_bit(step.loss, loss_nan_bit) | nan_bit(step.val_loss, val_loss_nan_bit) |
         nan_bit(step.grad_norm, grad_norm_nan_bit);
}

// SQLite keeps a NaN as NULL, so few steps have a row that says which of their NULLs were NaNs.
void insert_nan_mask(Database& database, RunId run, const StepRecord& step) {
  const std::int64_t nan_mask = nan_mask_of(step);
  if (nan_mask == 0) return;
  database.insert("OR REPLACE INTO nan_steps", "run_id, step, nan_mask", run, step.step, nan_mask);
}

// Appends rows after the existing ones, many to a statement: each statement costs as much as the row itself.
void insert_new_steps(Database& database, RunId run, std::span<const StepRecord> steps) {
  constexpr std::size_t at_once = 32;
  const auto sql = [](std::size_t rows) {
    std::string text = "INSERT INTO steps (" + all_columns + ") VALUES ";
    for (std::size_t i = 0; i < rows; ++i) text += (i == 0 ? "" : ",") + one_row;
    return text;
  };
  const std::string full = sql(at_once);
  while (!steps.empty()) {
    const std::size_t rows = std::min(at_once, steps.size());
    Statement insert(database, rows == at_once ? full : sql(rows));
    for (const StepRecord& step : steps.first(rows)) {
      bind_step(insert, run, step);
      insert_nan_mask(database, run, step);
    }
    insert.run();
    steps = steps.subspan(rows);
  }
}

// Writes a step that may be there already; that row moves to superseded_steps. Call in a transaction.
void replace_step(Database& database, RunId run, const StepRecord& step) {
  database.run("INSERT INTO superseded_steps (attempt, nan_mask, " + all_columns +
                   ") SELECT (SELECT coalesce(max(attempt), 0) + 1 FROM superseded_steps WHERE run_id = ?1 "
                   "AND step = ?2), coalesce((SELECT nan_mask FROM nan_steps WHERE run_id = ?1 AND step = "
                   "?2), 0), " +
                   all_columns + " FROM steps WHERE run_id = ?1 AND step = ?2",
               run, step.step);
  if (database.changes() > 0) database.run("DELETE FROM nan_steps WHERE run_id = ? AND step = ?", run, step.step);
  Statement insert(database, "INSERT OR REPLACE INTO steps (" + all_columns + ") VALUES " + one_row);
  bind_step(insert, run, step);
  insert.run();
  insert_nan_mask(database, run, step);
}

// Puts the NaNs back into rows that were read in the order of steps.
void add_nans(Database& database, RunId run, std::vector<StepReader::Row>& rows) {
  Statement masks(database,
                  "SELECT step, nan_mask FROM nan_steps WHERE run_id = ? AND step BETWEEN ? AND ? ORDER BY step", run,
                  rows.front().step.step, rows.back().step.step);
  auto row = rows.begin();
  while (masks.step()) {
    while (row != rows.end() && row->step.step < masks.integer(0)) ++row;
    if (row == rows.end()) return;
    if (row->step.step != masks.integer(0)) continue;
    const auto restore = [&](double& value, StepNanBit bit) {
      if (is_missing(value) && (masks.integer(1) >> bit & 1) != 0) value = std::numeric_limits<double>::quiet_NaN();
    };
    restore(row->step.loss, loss_nan_bit);
    restore(row->step.val_loss, val_loss_nan_bit);
    restore(row->step.grad_norm, grad_norm_nan_bit);
  }
}

void mark_repeated(Database& database, RunId run, std::vector<StepReader::Row>& rows) {
  Statement steps(database,
                  "SELECT DISTINCT step FROM superseded_steps WHERE run_id = ? AND step BETWEEN ? AND ? ORDER BY step",
                  run, rows.front().step.step, rows.back().step.step);
  auto row = rows.begin();
  while (steps.step()) {
    while (row != rows.end() && row->step.step < steps.integer(0)) ++row;
    if (row == rows.end()) return;
    row->repeated = row->step.step == steps.integer(0);
  }
}

}  // namespace

void insert_steps(Database& database, RunId run, std::span<const StepRecord> steps) {
  if (steps.empty()) return;
  Transaction whole(database);
  const auto last = database.find("SELECT max(step) FROM steps WHERE run_id = ?", run);
  const bool is_new = !last || steps.front().step > *last;
  const auto goes_back = [](const StepRecord& a, const StepRecord& b) { return a.step >= b.step; };
  const bool ascends = std::ranges::adjacent_find(steps, goes_back) == steps.end();
  if (ascends && is_new)
    insert_new_steps(database, run, steps);
  else
    for (const StepRecord& step : steps) replace_step(database, run, step);
  whole.commit();
}

namespace {

constexpr double StepRecord::*completed_values[] = {&StepRecord::loss, &StepRecord::val_loss, &StepRecord::dt_ms,
                                                    &StepRecord::lr, &StepRecord::grad_norm};

// Completes a step from `part`, which was learnt later.
void complete(StepRecord& step, const StepRecord& part) {
  for (double StepRecord::*value : completed_values)
    if (!is_missing(part.*value)) step.*value = part.*value;
  if (is_missing(step.at)) step.at = part.at;
  for (const NamedStepPart& each : all_step_parts)
    if (!is_missing(part.parts.*each.ms)) step.parts.*each.ms = part.parts.*each.ms;
  if (part.tokens > 0) step.tokens = part.tokens;
}

bool differs(double known, double later) {
  return !is_missing(known) && !is_missing(later) && known != later && !(std::isnan(known) && std::isnan(later));
}

bool repeats_loss(const StepRecord& step, const StepRecord& part) {
  return differs(step.loss, part.loss) || differs(step.val_loss, part.val_loss);
}

}  // namespace

void complete_steps(Database& database, RunId run, std::span<const StepRecord> steps, Completion how) {
  Transaction whole(database);
  for (const StepRecord& part : steps) {
    StepReader reader(database, run, {part.step, part.step}, StepReader::Parts::read);
    std::vector<StepReader::Row> rows;
    reader.read(rows);
    StepRecord step = rows.empty() ? part : rows.front().step;
    const bool is_attempt = !rows.empty() && how == Completion::keep_repeated && repeats_loss(step, part);
    if (how == Completion::fill) {
      StepRecord known = step;
      step = part;
      complete(step, known);
      if (!is_missing(known.at)) step.at = known.at;
    } else if (how == Completion::withdraw_loss) {
      if (rows.empty()) continue;
      if (step.loss == part.loss || (std::isnan(step.loss) && std::isnan(part.loss))) step.loss = missing;
    } else {
      complete(step, part);
    }
    if (is_attempt) {
      replace_step(database, run, step);
      continue;
    }
    database.run("DELETE FROM nan_steps WHERE run_id = ? AND step = ?", run, step.step);
    Statement insert(database, "INSERT OR REPLACE INTO steps (" + all_columns + ") VALUES " + one_row);
    bind_step(insert, run, step);
    insert.run();
    insert_nan_mask(database, run, step);
  }
  whole.commit();
}

bool StepReader::read(std::vector<Row>& rows) {
  rows.clear();
  if (done_) return false;
  const bool with_parts = parts_ == Parts::read;
  Transaction one_state(database_, Transaction::Kind::read);
  {
    Statement found(database_,
                    "SELECT " + step_columns + (with_parts ? part_columns : "") +
                        " FROM steps WHERE run_id = ? AND step BETWEEN ? AND ? ORDER BY step LIMIT ?",
                    run_, range_.first, range_.last, rows_at_once);
    while (found.step()) {
      rows.push_back({.step = read_step(found, run_)});
      if (with_parts) rows.back().step.parts = read_parts(found);
    }
  }
  done_ = std::ssize(rows) < rows_at_once || rows.back().step.step >= range_.last;
  if (!rows.empty()) {
    add_nans(database_, run_, rows);
    mark_repeated(database_, run_, rows);
    if (!done_) range_.first = rows.back().step.step + 1;
  }
  one_state.commit();
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
                  "SELECT count(coalesce(data_us, forward_us, backward_us, optimizer_us, communication_us)) FROM "
                  "(SELECT * FROM steps WHERE run_id = ? ORDER BY step DESC LIMIT 1000)",
                  run);
    if (!any.step() || any.integer(0) == 0) return {};
  }
  // Counts by position, as warm-up is counted: a resumed run's first steps are not its lowest numbers.
  Statement rows(database,
                 "SELECT avg(data_us), avg(forward_us), avg(backward_us), avg(optimizer_us), avg(communication_us) "
                 "FROM steps WHERE run_id = ?1 AND step > coalesce((SELECT step FROM steps "
                 "WHERE run_id = ?1 ORDER BY step LIMIT 1 OFFSET ?2 - 1), 0)",
                 run, warmup_steps);
  if (!rows.step()) return {};
  const auto mean = [&](int column) { return read_scaled(rows, column, part_scale); };
  return {mean(0), mean(1), mean(2), mean(3), mean(4)};
}

}  // namespace stepladder
