// Rows of `runs`, built from the tables of fields in storage/record_fields.h, so SQL and reading can't disagree.
// `learnt` columns may be updated by an import, `settled` ones only at creation or by a training. Reading distrusts the
// file: texts are cut, bad uids and deep JSON dropped.
#include "storage/database/run_rows.h"

#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "storage/bounded_text.h"
#include "storage/checked_text.h"
#include "storage/database/column_values.h"
#include "storage/database/curation.h"
#include "storage/errors.h"
#include "storage/json_values.h"
#include "storage/record_fields.h"

namespace stepladder {
namespace {

enum class Columns { learnt, settled, all };

bool is_among(Columns columns, unsigned use) {
  return columns == Columns::all || (columns == Columns::learnt) == ((use & In::learnt) != 0);
}

// "name, ladder_id, rung": those that an import may update as it reads, or those that are set when the run is created
// or by a training.
std::string names_of(Columns columns) {
  std::string names;
  for_each_field(run_fields, [&](const auto& field) {
    if (is_among(columns, field.use)) names += (names.empty() ? "" : ", ") + std::string(field.name);
  });
  return names;
}

const std::string learnt_columns = names_of(Columns::learnt);
const std::string settled_columns = names_of(Columns::settled);

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
  if (run.printed.clock_starts_after > 0) json[printed_clock_start] = run.printed.clock_starts_after;
  if (!run.printed.per_step.empty()) json[printed_per_step] = run.printed.per_step;
  return json_text(json);
}

void read_printed(Run& run) {
  // Most runs were not imported: their JSON stays as it is.
  if (std::ranges::none_of(printed_names,
                           [&](const char* name) { return run.environment.find(name) != std::string::npos; }))
    return;
  nlohmann::json json = nlohmann::json::parse(run.environment, nullptr, false);
  if (!json.is_object()) return;
  run.printed.unit = text_in(json, printed_unit);
  if (const auto rate = json.find(printed_rate); rate != json.end() && rate->is_number())
    run.printed.tokens_per_s = rate->get<double>();
  run.printed.times_from_clock = flag_in(json, printed_clock);
  run.printed.clock_starts_after = std::max<std::int64_t>(0, integer_in(json, printed_clock_start));
  if (const auto known = json.find(printed_per_step); known != json.end() && known->is_object())
    for (const auto& [name, value] : known->items())
      if (value.is_number()) run.printed.per_step[name] = value.get<double>();
  for (const char* const name : printed_names) json.erase(name);
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

// Drops what a stranger may have written into the file: a uid becomes a part of file names, and JSON is copied and
// written by functions that recurse.
void drop_hostile_text(Run& run) {
  if (!Uid::from(run.uid)) run.uid.clear();
  for (std::string* json : {&run.recipe, &run.environment})
    if (nests_deep(*json)) json->clear();
}

void bind_columns(Statement& row, Run run, Columns columns) {
  run.environment = environment_column(run);
  if (is_missing(run.created_at)) run.created_at = unix_now();
  if (run.uid.empty()) run.uid = random_uid();
  for_each_field(run_fields, [&](const auto& field) {
    if (is_among(columns, field.use)) bind_value(row, run.*field.member, field.unknown, (field.use & In::always) != 0);
  });
}

// Reads the columns in the order of run_columns.
Run read(const Statement& row) {
  Run run;
  int column = 0;
  run.id = row.integer(column++);
  for_each_field(run_fields, [&](const auto& field) { read_value(row, column++, run.*field.member, field.unknown); });
  bound_texts(run);
  drop_hostile_text(run);
  read_printed(run);
  return run;
}

// The values that a program printed, and over them those of a store that it writes; one of them if the other isn't
// JSON.
std::string recipe_with(const std::string& printed, const std::string& of_store) {
  auto recipe = Json::parse(printed, nullptr, false);
  const auto known = Json::parse(of_store, nullptr, false);
  if (recipe.is_discarded() || known.is_discarded()) return printed.empty() ? of_store : printed;
  recipe.merge_patch(known);
  return json_text(recipe);
}

// Call after a statement that should have changed this run.
void require_run(const Database& database, RunId id) {
  if (database.changes() == 0) throw MissingRun("run " + std::to_string(id) + " is not in " + database.file().string());
}

// The tags that a script or another tracker gave its run ("tags" in the environment) are the user's from the beginning.
// Tags have no spaces or commas, which separate them.
void keep_tags(Database& database, RunId run, const std::string& environment) {
  if (environment.find("\"tags\"") == std::string::npos) return;
  Statement known_marks(database, "SELECT 1 FROM curation WHERE run_id = ?", run);
  if (known_marks.step()) return;
  const auto json = nlohmann::json::parse(environment, nullptr, false);
  const auto given = json.is_object() ? json.find("tags") : json.end();
  if (!json.is_object() || given == json.end() || !given->is_array()) return;
  std::string text;
  for (const auto& tag : *given) {
    if (!tag.is_string()) continue;
    std::string one = tag.get<std::string>();
    for (char& c : one)
      if (c == ',' || c == ' ' || c == '\t' || c == '\n') c = '-';
    text += (text.empty() ? "" : ", ") + one;
  }
  if (const std::vector<std::string> tags = tags_from(text); !tags.empty())
    CurationStore(database).set(run, {.tags = tags});
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

const int run_column_count = 1 + std::tuple_size_v<decltype(run_fields)>;  // the id
const std::string run_columns = of_runs("id, " + learnt_columns + ", " + settled_columns);

Run read_run(const Database& database, const Statement& row) {
  try {
    return read(row);
  } catch (const std::invalid_argument& unknown) {
    throw DamagedFile(database.file(), database.file().string() + " is damaged: " + unknown.what());
  }
}

std::optional<Run> read_run(Database& database, RunId id) {
  Statement rows(database, "SELECT " + run_columns + " FROM runs WHERE id = ?", id);
  if (!rows.step()) return std::nullopt;
  return read_run(database, rows);
}

Statement& bind_owner(Statement& statement, const std::optional<ProcessIdentity>& owner) {
  if (!owner) return statement.bind(std::nullopt).bind(std::nullopt).bind(std::nullopt);
  return statement.bind(owner->pid).bind(known(owner->start)).bind(known(owner->boot));
}

void forget_requests(Database& database, RunId run) {
  database.run("DELETE FROM requests WHERE run_id = ?", run);
}

RunId insert_run(Database& database, Run run, const std::optional<ProcessIdentity>& owner, Hidden hidden) {
  bound_texts(run);
  static const std::string columns =
      learnt_columns + ", " + settled_columns + ", owner_pid, owner_start, owner_boot, hidden";
  // A number is never used twice, even after the newest run was deleted: checkpoints are stored under it. Numbers of
  // a stranger's that are too high for any list don't count, since none may follow them.
  static const std::string limit = std::to_string(highest_run);
  static const std::string number =
      "(SELECT max(coalesce(max(id), 0), coalesce((SELECT CAST(value AS INTEGER) FROM settings WHERE key = "
      "'highest_run' AND CAST(value AS INTEGER) < " +
      limit + "), 0)) + 1 FROM runs WHERE id < " + limit + ")";
  static const std::string sql =
      "INSERT INTO runs (id, " + columns + ") VALUES (" + number + ", ?" + places_of(columns) + ")";
  const std::string environment = run.environment;
  Statement insert(database, sql);
  bind_columns(insert, std::move(run), Columns::all);
  bind_owner(insert, owner).bind(static_cast<int>(hidden)).run();
  const RunId id = database.last_insert_id();
  forget_requests(database, id);
  keep_tags(database, id, environment);
  return id;
}

void update_run(Database& database, Run run) {
  bound_texts(run);
  static const std::string sql =
      "UPDATE runs SET (" + learnt_columns + ") = (?" + places_of(learnt_columns) + ") WHERE id = ?";
  Statement update(database, sql);
  const RunId id = run.id;
  const std::string environment = run.environment;
  bind_columns(update, std::move(run), Columns::learnt);
  update.bind(id).run();
  require_run(database, id);
  keep_tags(database, id, environment);
}

void start_run(Database& database, const RunStarted& started, const ProcessIdentity& owner) {
  const std::optional<Run> before = read_run(database, started.run);
  if (!before) throw MissingRun("run " + std::to_string(started.run) + " is not in " + database.file().string());
  Run run = *before;
  merge(run, started);
  Statement followed(database, "SELECT 1 FROM followed WHERE run_id = ?", started.run);
  // The facts from a store that a watched run has joined count over what its program printed.
  if (before->source != "launched" && followed.step()) {
    run.sync = before->sync;
    run.recipe = recipe_with(started.recipe, before->recipe);
  }
  static const std::string columns = [] {
    std::string names = "status, reason, ended_at, started_at, model_flops_per_token";
    for_each_field(started_fields, [&](const auto& field) { names += ", " + std::string(field.name); });
    return names + ", owner_pid, owner_start, owner_boot";
  }();
  // A resumed run starts again: `owner` owns it from now on.
  Statement update(database, "UPDATE runs SET (" + columns + ") = (?" + places_of(columns) + ") WHERE id = ?",
                   to_string(run.status), std::nullopt, std::nullopt, run.started_at, run.model_flops_per_token);
  for_each_field(started_fields, [&](const auto& field) { bind_value(update, run.*field.of_run, field.unknown); });
  bind_owner(update, owner).bind(started.run).run();
  require_run(database, started.run);

  if (started.torch_version.empty()) return;
  database.run(
      "UPDATE runs SET environment = json_set(CASE WHEN json_valid(environment) THEN environment "
      "ELSE '{}' END, '$.torch_version', ?) WHERE id = ?",
      started.torch_version, started.run);
}

void end_run(Database& database, const RunEnded& ended) {
  Statement update(database,
                   "UPDATE runs SET status = ?, reason = ?, ended_at = ?, "
                   "peak_memory_bytes = coalesce(?, peak_memory_bytes) WHERE id = ?");
  const std::string reason = bounded(ended.reason, longest_line);
  update.bind(to_string(ended.status)).bind(known(reason)).bind(ended.at);
  update.bind(known(ended.peak_memory_bytes)).bind(ended.run).run();
  require_run(database, ended.run);
  database.run("DELETE FROM requests WHERE run_id = ?", ended.run);
}

std::vector<DeadRun> dead_runs(Database& database, const std::string& condition) {
  Statement rows(
      database, "SELECT id, owner_pid, owner_start, owner_boot FROM runs WHERE owner_pid IS NOT NULL AND " + condition);
  std::vector<DeadRun> dead;
  while (rows.step()) {
    ProcessIdentity owner{.pid = rows.integer(1), .start = rows.integer(2), .boot = rows.text(3)};
    if (!is_alive(owner)) dead.push_back({rows.integer(0), std::move(owner)});
  }
  return dead;
}

std::vector<Run> read_runs(const Database& database, Statement& rows) {
  std::vector<Run> runs;
  while (rows.step()) runs.push_back(read_run(database, rows));
  return runs;
}

}  // namespace stepladder
