#include "storage/database/run_rows.h"

#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "storage/bounded_text.h"
#include "storage/checked_text.h"
#include "storage/damaged_file.h"
#include "storage/database/column_values.h"
#include "storage/nested_json.h"

namespace stepladder {
namespace {

// Columns that an import may update as it reads, and those that are set when the run is created or by a training.
const std::string learnt_columns =
    "name, ladder_id, rung, repeat, stage, title, changed, status, reason, source, source_path, started_at, "
    "ended_at, planned_steps, tokens_per_step, warmup_steps, params, model_flops_per_token, loss_floor, device, "
    "hardware, precision, sync, recipe, environment";
const std::string settled_columns =
    "created_at, parent_id, forked_at_step, loss_against, attention, setup_ms, peak_memory_bytes, uid";

// "?, ?, ?" for as many columns.
std::string places(const std::string& columns) {
  std::string places = "?";
  for (const char c : columns) places += c == ',' ? ", ?" : "";
  return places;
}

// Qualified, for joins with tables that have columns of the same names.
std::string of_runs(const std::string& columns) {
  std::string named = "runs.";
  for (const char c : columns) named += c == ' ' ? " runs." : std::string(1, c);
  return named;
}

std::string environment_column(const Run& run) {
  if (!run.printed.known()) return run.environment;
  nlohmann::json json = nlohmann::json::parse(run.environment, nullptr, false);
  if (!json.is_object()) json = nlohmann::json::object();
  if (!run.printed.unit.empty()) json[printed_unit] = run.printed.unit;
  if (!is_missing(run.printed.tokens_per_s)) json[printed_rate] = run.printed.tokens_per_s;
  if (run.printed.times_from_clock) json[printed_clock] = true;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void read_printed(Run& run) {
  // Most runs were not imported: their JSON stays as it is.
  if (run.environment.find(printed_unit) == std::string::npos &&
      run.environment.find(printed_rate) == std::string::npos &&
      run.environment.find(printed_clock) == std::string::npos)
    return;
  nlohmann::json json = nlohmann::json::parse(run.environment, nullptr, false);
  if (!json.is_object()) return;
  if (const auto unit = json.find(printed_unit); unit != json.end() && unit->is_string())
    run.printed.unit = unit->get<std::string>();
  if (const auto rate = json.find(printed_rate); rate != json.end() && rate->is_number())
    run.printed.tokens_per_s = rate->get<double>();
  if (const auto clock = json.find(printed_clock); clock != json.end() && clock->is_boolean())
    run.printed.times_from_clock = clock->get<bool>();
  json.erase(printed_unit);
  json.erase(printed_rate);
  json.erase(printed_clock);
  run.environment = json.empty() ? "" : json.dump();
}

// Cuts the texts of a run, and not its JSON, to their longest (storage/bounded_text.h).
void bound_texts(Run& run) {
  for (std::string* text : {&run.name, &run.stage, &run.title, &run.device, &run.hardware, &run.precision,
                            &run.attention, &run.source, &run.printed.unit})
    *text = bounded(std::move(*text), longest_name);
  for (std::string* text : {&run.changed, &run.reason, &run.source_path})
    *text = bounded(std::move(*text), longest_line);
}

// What a stranger may have written into the file: a uid becomes a part of file names, and JSON is copied and written by
// functions that recurse.
void distrust(Run& run) {
  if (!Uid::from(run.uid)) run.uid.clear();
  for (std::string* json : {&run.recipe, &run.environment})
    if (nests_deep(*json)) json->clear();
}

void bind_learnt(Statement& row, const Run& run) {
  row.bind(run.name).bind(run.ladder).bind(run.rung).bind(run.repeat);
  row.bind(known(run.stage)).bind(known(run.title)).bind(known(run.changed));
  row.bind(to_string(run.status)).bind(known(run.reason)).bind(known(run.source)).bind(known(run.source_path));
  row.bind(run.started_at).bind(run.ended_at);
  row.bind(known(run.planned_steps)).bind(known(run.tokens_per_step)).bind(known(run.warmup_steps, -1));
  row.bind(known(run.params)).bind(run.model_flops_per_token).bind(run.loss_floor);
  row.bind(known(run.device)).bind(known(run.hardware)).bind(known(run.precision)).bind(to_string(run.sync));
  row.bind(known(run.recipe)).bind(known(environment_column(run)));
}

void bind_settled(Statement& row, const Run& run) {
  row.bind(is_missing(run.created_at) ? unix_now() : run.created_at).bind(run.parent).bind(known(run.forked_at_step));
  row.bind(known(std::int64_t{run.loss_against})).bind(known(run.attention)).bind(run.setup_ms);
  row.bind(known(run.peak_memory_bytes)).bind(run.uid.empty() ? random_uid() : run.uid);
}

// In the order of run_columns.
Run read(const Statement& row) {
  Run run;
  int column = 0;
  run.id = row.integer(column++);
  run.name = row.text(column++);
  if (!row.is_null(column)) run.ladder = row.integer(column);
  ++column;
  run.rung = static_cast<int>(row.integer(column++));
  run.repeat = static_cast<int>(row.integer(column++));
  run.stage = row.text(column++);
  run.title = row.text(column++);
  run.changed = row.text(column++);
  run.status = run_status_from(row.text(column++));
  run.reason = row.text(column++);
  run.source = row.text(column++);
  run.source_path = row.text(column++);
  run.started_at = row.real(column++);
  run.ended_at = row.real(column++);
  run.planned_steps = count_of(row, column++);
  run.tokens_per_step = count_of(row, column++);
  run.warmup_steps = row.is_null(column) ? -1 : count_of(row, column);
  ++column;
  run.params = count_of(row, column++);
  run.model_flops_per_token = row.real(column++);
  run.loss_floor = row.real(column++);
  run.device = row.text(column++);
  run.hardware = row.text(column++);
  run.precision = row.text(column++);
  run.sync = sync_from(row.text(column++));
  run.recipe = row.text(column++);
  run.environment = row.text(column++);
  run.created_at = row.real(column++);
  if (!row.is_null(column)) run.parent = row.integer(column);
  ++column;
  run.forked_at_step = count_of(row, column++);
  run.loss_against = static_cast<int>(row.integer(column++));
  run.attention = row.text(column++);
  run.setup_ms = row.real(column++);
  run.peak_memory_bytes = count_of(row, column++);
  run.uid = row.text(column++);
  bound_texts(run);
  distrust(run);
  read_printed(run);
  return run;
}

// Call after a statement that should have changed this run.
void require_run(const Database& database, RunId id) {
  if (database.changes() == 0) throw MissingRun("run " + std::to_string(id) + " is not in " + database.file().string());
}

}  // namespace

std::string random_uid() {
  static constexpr char digits[] = "0123456789abcdef";
  std::random_device random;
  std::string uid;
  for (int word = 0; word < 4; ++word) {
    std::uint32_t bits = random();
    for (int digit = 0; digit < 8; ++digit, bits >>= 4) uid += digits[bits & 15];
  }
  return uid;
}

const std::string is_listed =
    "runs.hidden = 0 AND runs.id NOT IN (SELECT run_id FROM curation WHERE deleted_at IS NOT NULL)";

const std::string run_columns = of_runs("id, " + learnt_columns + ", " + settled_columns);

Run read_run(const Database& database, const Statement& row) {
  try {
    return read(row);
  } catch (const std::invalid_argument& unknown) {
    throw DamagedFile(database.file(), database.file().string() + " is damaged: " + unknown.what());
  }
}

std::optional<Run> read_run(Database& database, RunId id) {
  Statement rows(database, "SELECT " + run_columns + " FROM runs WHERE id = ?");
  rows.bind(id);
  if (!rows.step()) return std::nullopt;
  return read_run(database, rows);
}

Statement& bind_owner(Statement& statement, const std::optional<ProcessIdentity>& owner) {
  if (!owner) return statement.bind_null().bind_null().bind_null();
  return statement.bind(owner->pid).bind(known(owner->start)).bind(known(owner->boot));
}

void forget_requests(Database& database, RunId run) {
  Statement(database, "DELETE FROM requests WHERE run_id = ?").bind(run).run();
}

RunId insert_run(Database& database, Run run, const std::optional<ProcessIdentity>& owner, Hidden hidden) {
  bound_texts(run);
  static const std::string columns =
      learnt_columns + ", " + settled_columns + ", owner_pid, owner_start, owner_boot, hidden";
  // A number is never used twice, even after the newest run was deleted: checkpoints are stored under it.
  static const std::string number =
      "(SELECT max(coalesce(max(id), 0), coalesce((SELECT CAST(value AS INTEGER) FROM settings WHERE key = "
      "'highest_run'), 0)) + 1 FROM runs)";
  static const std::string sql =
      "INSERT INTO runs (id, " + columns + ") VALUES (" + number + ", " + places(columns) + ")";
  Statement insert(database, sql);
  bind_learnt(insert, run);
  bind_settled(insert, run);
  bind_owner(insert, owner).bind(static_cast<int>(hidden)).run();
  const RunId id = database.last_insert_id();
  forget_requests(database, id);
  return id;
}

void update_run(Database& database, Run run) {
  bound_texts(run);
  static const std::string sql =
      "UPDATE runs SET (" + learnt_columns + ") = (" + places(learnt_columns) + ") WHERE id = ?";
  Statement update(database, sql);
  bind_learnt(update, run);
  update.bind(run.id).run();
  require_run(database, run.id);
}

void start_run(Database& database, const RunStarted& started, const ProcessIdentity& owner) {
  // A resumed run starts again: `owner` owns it from now on, and it is no longer over. What a watched run knows from a
  // store that has joined it counts over what its program printed.
  Statement update(
      database,
      "UPDATE runs SET status = 'running', reason = NULL, ended_at = NULL, started_at = ?, "
      "tokens_per_step = coalesce(?, tokens_per_step), params = coalesce(?, params), "
      "model_flops_per_token = coalesce(?, model_flops_per_token), loss_floor = coalesce(?, loss_floor), "
      "device = coalesce(?, device), hardware = coalesce(?, hardware), "
      "precision = coalesce(?, precision), attention = coalesce(?, attention), "
      "setup_ms = coalesce(?, setup_ms), "
      "sync = CASE WHEN source IS NOT 'launched' AND id IN (SELECT run_id FROM followed) THEN sync ELSE ? END, "
      "recipe = coalesce(CASE WHEN source IS NOT 'launched' AND id IN (SELECT run_id FROM followed) AND "
      "json_valid(recipe) "
      "AND json_valid(?) THEN json_patch(?, recipe) ELSE ? END, recipe), "
      "owner_pid = ?, owner_start = ?, owner_boot = ? WHERE id = ?");
  update.bind(started.at).bind(known(started.tokens_per_step)).bind(known(started.params));
  update.bind(started.params > 0 ? 6.0 * static_cast<double>(started.params) : missing).bind(started.loss_floor);
  update.bind(known(started.device)).bind(known(started.hardware)).bind(known(started.precision));
  update.bind(known(started.attention)).bind(started.setup_ms);
  update.bind(to_string(started.sync));
  update.bind(known(started.recipe)).bind(known(started.recipe)).bind(known(started.recipe));
  bind_owner(update, owner).bind(started.run).run();
  require_run(database, started.run);

  if (started.torch_version.empty()) return;
  Statement environment(database,
                        "UPDATE runs SET environment = json_set(CASE WHEN json_valid(environment) THEN environment "
                        "ELSE '{}' END, '$.torch_version', ?) WHERE id = ?");
  environment.bind(started.torch_version).bind(started.run).run();
}

void end_run(Database& database, const RunEnded& ended) {
  Statement update(database,
                   "UPDATE runs SET status = ?, reason = ?, ended_at = ?, "
                   "peak_memory_bytes = coalesce(?, peak_memory_bytes) WHERE id = ?");
  const std::string reason = bounded(ended.reason, longest_line);
  update.bind(to_string(ended.status)).bind(known(reason)).bind(ended.at);
  update.bind(known(ended.peak_memory_bytes)).bind(ended.run).run();
  require_run(database, ended.run);
  Statement(database, "DELETE FROM requests WHERE run_id = ?").bind(ended.run).run();
}

}  // namespace stepladder
