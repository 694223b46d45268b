// Stepladder's own project files, of any version and from anybody (docs/database.md). Only rows of plain tables are
// read: no view, virtual table or computed column, and reading fires no trigger.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>

#include "storage/bounded_text.h"
#include "storage/importers/trackers/foreign_database.h"
#include "storage/importers/trackers/foreign_run.h"
#include "storage/json_values.h"
#include "storage/record_fields.h"
#include "storage/try_records.h"
#include "storage/wording.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t project_id = 0x5374'704c;  // "StpL", SQLite's application_id
constexpr std::int64_t largest_step = std::int64_t{1} << 53;
constexpr std::size_t most_tries = 100'000;
constexpr std::size_t longest_try_text = 2 << 20;  // twice the longest patch
constexpr std::size_t most_try_bytes = 256 << 20;  // of all series, since they are in memory until the file is read

// A value of a step, and the columns that have held it: in which unit, the newest first.
struct StoredAs {
  const char* column;
  double units;  // in one
};
struct StepValue {
  double StepRecord::*own;  // one of the two
  double StepParts::*part;
  std::array<StoredAs, 2> stored;
};
constexpr StepValue step_values[] = {
    {&StepRecord::loss, nullptr, {{{"loss", 1}}}},
    {&StepRecord::val_loss, nullptr, {{{"val_loss", 1}}}},
    {&StepRecord::grad_norm, nullptr, {{{"grad_norm_e9", 1e9}, {"grad_norm", 1}}}},
    {&StepRecord::dt_ms, nullptr, {{{"dt_ns", 1e6}, {"dt_ms", 1}}}},
    {&StepRecord::lr, nullptr, {{{"lr_e12", 1e12}, {"lr", 1}}}},
    {&StepRecord::at, nullptr, {{{"at_ms", 1e3}, {"at", 1}}}},
    {nullptr, &StepParts::data_ms, {{{"data_us", 1e3}, {"data_ms", 1}}}},
    {nullptr, &StepParts::forward_ms, {{{"forward_us", 1e3}, {"forward_ms", 1}}}},
    {nullptr, &StepParts::backward_ms, {{{"backward_us", 1e3}, {"backward_ms", 1}}}},
    {nullptr, &StepParts::optimizer_ms, {{{"optimizer_us", 1e3}, {"optimizer_ms", 1}}}},
    {nullptr, &StepParts::communication_ms, {{{"communication_us", 1e3}, {"communication_ms", 1}}}},
};
constexpr int values_with_nan_bit = 3;  // the first ones, in the order of nan_mask's bits

// The columns of a table that are stored as such; nullopt if there is no such table. Throws ImportError if something
// else has its name.
class PlainTables {
 public:
  explicit PlainTables(Database& database) : database_(database) {}

  const std::set<std::string>& columns(const std::string& table) {
    const auto known = columns_.find(table);
    return known != columns_.end() ? known->second : columns_[table] = read_columns(table);
  }
  bool has(const std::string& table) { return !columns(table).empty(); }

  // "NULL AS a, b" of the columns that are asked for.
  std::string list(const std::string& table, const std::vector<std::string>& asked) {
    std::string text;
    for (const std::string& column : asked)
      text += (text.empty() ? "" : ", ") + (columns(table).contains(column) ? table + "." + column : "NULL");
    return text;
  }

 private:
  std::set<std::string> read_columns(const std::string& table) {
    {
      Statement entry(database_,
                      "SELECT type = 'table' AND rootpage > 0 AND sql LIKE 'CREATE TABLE%' FROM sqlite_schema "
                      "WHERE lower(name) = ? AND type <> 'trigger'",
                      table);
      bool any = false;
      for (; entry.step(); any = true)
        if (entry.integer(0) != 1)
          throw ImportError("has something else in place of the table `" + table + "`, which is not read");
      if (!any) return {};
    }
    std::set<std::string> names;
    Statement rows(database_, "SELECT lower(name) FROM pragma_table_xinfo(?) WHERE hidden = 0", table);
    while (rows.step()) names.insert(rows.text(0));
    return names;
  }

  Database& database_;
  std::map<std::string, std::set<std::string>> columns_;
};

// One table's steps of one run, in the order of steps and attempts.
class StepCursor {
 public:
  StepCursor(Database& database, const std::string& sql, const std::vector<double>& units, RunId run)
      : rows_(database, sql), units_(units) {
    rows_.bind(run);
    next();
  }

  bool is_at_end() const { return !step_; }
  std::int64_t step() const { return *step_; }

  StepRecord take() {
    StepRecord record{.step = *step_, .tokens = std::max<std::int64_t>(rows_.integer(2), 0)};
    const std::int64_t nan_mask = rows_.integer(1);
    for (std::size_t i = 0; i < std::size(step_values); ++i) {
      const int column = static_cast<int>(i) + 3;
      double value = rows_.is_null(column) ? missing : rows_.real(column) / units_[i];
      if (rows_.is_null(column) && i < values_with_nan_bit && (nan_mask >> i & 1) != 0)
        value = std::numeric_limits<double>::quiet_NaN();
      if (step_values[i].own)
        record.*step_values[i].own = value;
      else
        record.parts.*step_values[i].part = value;
    }
    next();
    return record;
  }

 private:
  void next() { step_ = rows_.step() ? std::optional(rows_.integer(0)) : std::nullopt; }

  Statement rows_;
  const std::vector<double>& units_;
  std::optional<std::int64_t> step_;
};

template <class From>
auto value_or(From from, const std::string& text, decltype(from(text)) otherwise) {
  try {
    return from(text);
  } catch (const std::invalid_argument&) {
    return otherwise;
  }
}

class ProjectFile {
 public:
  ProjectFile(const fs::path& file, ImportSink& sink) : database_(file), tables_(database_.get()), sink_(sink) {}

  void read() {
    if (!tables_.has("runs") || !tables_.has("steps")) throw ImportError("is a Stepladder project without runs");
    for (const char* const table : {"ladders", "curation", "nan_steps", "settings", "lanes"})
      tables_.has(table);  // throws what it refuses
    // In the order of attempts: what later tables hold is newer.
    for (const char* const table : {"superseded_steps", "steps_to_move", "steps"})
      if (tables_.has(table)) prepare_steps(table);
    for (const char* const table :
         {"metrics", "metric_values", "superseded_metric_values", "try_series", "tries", "try_runs"})
      tables_.has(table);
    read_runs();
    read_views();
  }

 private:
  struct Entry {
    RunId id;
    std::optional<LadderId> ladder;
    std::int64_t rung;
  };
  struct StepTable {
    std::string sql;
    std::vector<double> units;
  };

  void prepare_steps(const std::string& table) {
    const std::set<std::string>& columns = tables_.columns(table);
    if (!columns.contains("run_id") || !columns.contains("step"))
      throw ImportError("has a table `" + table + "` without the numbers of runs and steps");
    StepTable steps;
    std::string nan_mask = tables_.list(table, {"nan_mask"});
    if (table == "steps" && nan_mask == "NULL" && tables_.columns("nan_steps").contains("nan_mask"))
      nan_mask =
          "(SELECT nan_mask FROM nan_steps WHERE nan_steps.run_id = steps.run_id AND nan_steps.step = steps.step)";
    std::string list = table + ".step, " + nan_mask + ", " + tables_.list(table, {"tokens"});
    for (const StepValue& value : step_values) {
      const auto stored = std::ranges::find_if(
          value.stored, [&](const StoredAs& it) { return it.column && columns.contains(it.column); });
      list += stored == value.stored.end() ? ", NULL" : ", " + table + "." + stored->column;
      steps.units.push_back(stored == value.stored.end() ? 1 : stored->units);
    }
    steps.sql = "SELECT " + list + " FROM " + table + " WHERE " + table + ".run_id = ? ORDER BY " + table + ".step" +
                (columns.contains("attempt") ? ", " + table + ".attempt" : "");
    step_tables_.push_back(std::move(steps));
  }

  // The runs of a ladder follow each other, as the sink needs it.
  void read_runs() {
    std::vector<Entry> loose;
    std::map<LadderId, std::vector<Entry>> ladders;
    for (const Entry& entry : entries()) {
      if (entry.ladder)
        ladders[*entry.ladder].push_back(entry);
      else
        loose.push_back(entry);
    }
    std::size_t passed_on = 0;
    for (auto& [id, runs] : ladders) {
      std::ranges::stable_sort(runs, {}, &Entry::rung);
      std::vector<int> rungs;
      for (const Entry& entry : runs) {
        if (!read_run(entry.id)) continue;
        rungs.push_back(static_cast<int>(std::clamp<std::int64_t>(entry.rung, 0, 1'000'000)));
      }
      if (rungs.empty()) continue;
      sink_.ladder(ladder(id), rungs);
      read_tries(id);
      passed_on += rungs.size();
    }
    for (const Entry& entry : loose) passed_on += read_run(entry.id) ? 1 : 0;
    if (left_out_ > 0)
      sink_.note(0, plural(left_out_, "run was", "runs were") + " left out: in the bin, or not yet whole");
    if (bad_steps_ > 0)
      sink_.note(0, plural(bad_steps_, "step was", "steps were") + " left out: its number is negative or too large");
    const std::int64_t series =
        has_columns("try_series", {"ladder_id"}) ? database_.get().integer("SELECT count(*) FROM try_series") : 0;
    if (series > series_seen_)
      sink_.note(0, plural(series - series_seen_, "series of tries is", "series of tries are") +
                        " left out: none of the runs is imported");
    if (passed_on == 0) throw ImportError("is a Stepladder project without runs");
    sink_.note(0,
               "runs, ladders, steps, metrics, tries, saved views and what the machine did are imported; tags, notes, "
               "samples, "
               "console output and profiles are not");
  }

  std::vector<Entry> entries() {
    std::vector<Entry> entries;
    std::string where;
    if (tables_.columns("runs").contains("hidden")) where = " WHERE coalesce(runs.hidden, 0) = 0";
    if (tables_.columns("curation").contains("deleted_at"))
      where += std::string(where.empty() ? " WHERE" : " AND") +
               " runs.id NOT IN (SELECT run_id FROM curation WHERE deleted_at IS NOT NULL AND run_id IS NOT NULL)";
    Statement rows(database_.get(), "SELECT runs.id, " + tables_.list("runs", {"ladder_id", "rung"}) + " FROM runs" +
                                        where + " ORDER BY runs.id");
    while (rows.step())
      entries.push_back({.id = rows.integer(0),
                         .ladder = rows.is_null(1) ? std::nullopt : std::optional(rows.integer(1)),
                         .rung = rows.integer(2)});
    left_out_ = static_cast<std::uint64_t>(database_.get().integer("SELECT count(*) FROM runs")) - entries.size();
    return entries;
  }

  Ladder ladder(LadderId id) {
    Ladder ladder;
    if (!tables_.has("ladders") || !tables_.columns("ladders").contains("id")) return ladder;
    Statement row(
        database_.get(),
        "SELECT " + tables_.list("ladders", {"name", "notes", "created_at"}) + " FROM ladders WHERE ladders.id = ?",
        id);
    if (row.step()) ladder = {.name = row.text(0), .notes = row.text(1), .created_at = row.real(2)};
    return ladder;
  }

  // A stranger's value, within bounds; unknown words become `unknown`.
  template <class Value>
  static void take(const Statement& row, int column, Value& value, const Unknown<Value>& unknown) {
    if constexpr (std::is_same_v<Value, std::string>)
      value = row.text(column);
    else if constexpr (std::is_same_v<Value, double>)
      value = row.real(column);
    else if constexpr (std::is_same_v<Value, RunStatus>)
      value = value_or(run_status_from, row.text(column), unknown);
    else if constexpr (std::is_same_v<Value, Sync>)
      value = value_or(sync_from, row.text(column), unknown);
    else if constexpr (std::is_same_v<Value, int>)
      value = static_cast<int>(std::clamp<std::int64_t>(row.integer(column), 0, 1'000'000));
    else if constexpr (std::is_same_v<Value, std::int64_t>)
      value = row.is_null(column) ? unknown : std::max<std::int64_t>(row.integer(column), unknown);
  }

  std::optional<Run> run_of(RunId id) {
    static const std::vector<std::string> columns = [] {
      std::vector<std::string> names;
      for_each_field(run_fields, [&](const auto& field) {
        if ((field.use & In::project) != 0) names.emplace_back(field.name);
      });
      return names;
    }();
    Statement row(database_.get(), "SELECT " + tables_.list("runs", columns) + " FROM runs WHERE runs.id = ?", id);
    if (!row.step()) return std::nullopt;
    Run run{.id = id};
    int column = 0;
    for_each_field(run_fields, [&](const auto& field) {
      if ((field.use & In::project) != 0) take(row, column++, run.*field.member, field.unknown);
    });
    for (std::string* json : {&run.recipe, &run.environment})
      if (nests_deep(*json)) json->clear();
    if (!is_over(run.status)) {
      run.status = RunStatus::interrupted;
      run.reason = "it was still queued or running when it was imported";
    }
    return run;
  }

  bool read_run(RunId id) {
    const std::optional<Run> run = run_of(id);
    if (!run) return false;
    sink_.begin_run(*run);
    std::vector<std::unique_ptr<StepCursor>> cursors;
    for (const StepTable& table : step_tables_)
      cursors.push_back(std::make_unique<StepCursor>(database_.get(), table.sql, table.units, id));
    while (true) {
      StepCursor* first = nullptr;
      for (const auto& cursor : cursors)
        if (!cursor->is_at_end() && (!first || cursor->step() < first->step())) first = cursor.get();
      if (!first) break;
      const StepRecord record = first->take();
      if (record.step < 0 || record.step > largest_step)
        ++bad_steps_;
      else
        sink_.step(record);
    }
    read_metrics(id);
    read_machine(id);
    sink_.end_run(*run);
    return true;
  }

  // Without it a run that others disturbed would look as good as any.
  void read_machine(RunId id) {
    if (!has_columns("lanes", {"run_id", "at"})) return;
    std::vector<std::string> names{"at", "step"};
    for_each_measurement(SystemMetrics{}, [&](const char* name, const auto&) { names.emplace_back(name); });
    Statement row(database_.get(),
                  "SELECT " + tables_.list("lanes", names) + " FROM lanes WHERE run_id = ? ORDER BY at", id);
    while (row.step()) {
      SystemMetrics sample{.step = std::max<std::int64_t>(row.integer(1), 0), .at = row.real(0)};
      int column = 2;
      for_each_measurement(
          sample, [&]<class Value>(const char*, Value& value) { take(row, column++, value, Unknown<Value>{}); });
      sample.throttle_reason = bounded(std::move(sample.throttle_reason), longest_name);
      if (std::isfinite(sample.at)) sink_.machine(sample);
    }
  }

  // A text that a program of ours would have stored; else empty.
  std::string try_text(const Statement& row, int column, std::size_t longest = longest_try_text) {
    std::string text = row.text(column);
    if (text.size() > longest) text.clear();
    try_bytes_ += text.size();
    return text;
  }
  std::string try_json(const Statement& row, int column) {
    std::string text = try_text(row, column);
    return nests_deep(text) ? std::string() : text;
  }
  std::string word(const Statement& row, int column) { return try_text(row, column, 100); }  // a hash or a verdict

  bool has_room_for_tries() {
    if (try_bytes_ <= most_try_bytes) return true;
    sink_.note(0, "a series of tries is left out, since the file's series take more than 256 MiB");
    return false;
  }

  void read_tries(LadderId id) {
    if (!has_columns("try_series", {"ladder_id"}) || !has_columns("tries", {"ladder_id", "number"}) ||
        !has_columns("try_runs", {"ladder_id", "place"}))
      return;
    Statement row(database_.get(),
                  "SELECT " + tables_.list("try_series", {"checkout", "plan", "begun_at", "ended_at", "answer"}) +
                      " FROM try_series WHERE ladder_id = ?");
    row.bind(id);
    if (!row.step()) return;
    ++series_seen_;
    const TrySeries series{.checkout = bounded(row.text(0), longest_line),
                           .plan = try_json(row, 1),
                           .begun_at = row.real(2),
                           .ended_at = row.real(3),
                           .answer = try_json(row, 4)};
    std::vector<Try> tries;
    Statement each(database_.get(),
                   "SELECT " +
                       tables_.list("tries", {"number", "message", "parent", "tree", "commit_hash", "patch",
                                              "patch_bytes", "begun_at", "ended_at", "verdict", "answer"}) +
                       " FROM tries WHERE ladder_id = ? ORDER BY number");
    each.bind(id);
    for (std::int64_t number = 0; each.step(); ++number) {
      if (each.integer(0) != number || each.integer(2) < 0 || each.integer(2) > number || tries.size() == most_tries)
        return sink_.note(0, "a series of tries is left out, since its tries aren't numbered as they should be");
      if (!has_room_for_tries()) return;
      tries.push_back({.number = number,
                       .message = bounded(each.text(1), longest_line),
                       .parent = each.integer(2),
                       .tree = word(each, 3),
                       .commit = word(each, 4),
                       .patch = try_text(each, 5),
                       .patch_bytes = std::max<std::int64_t>(each.integer(6), 0),
                       .begun_at = each.real(7),
                       .ended_at = each.real(8),
                       .verdict = word(each, 9),
                       .answer = try_json(each, 10)});
    }
    std::vector<TryRun> runs;
    Statement run(database_.get(), "SELECT " +
                                       tables_.list("try_runs", {"place", "during", "state", "run_id", "value",
                                                                 "others", "wall_s", "exit_status"}) +
                                       " FROM try_runs WHERE ladder_id = ? ORDER BY place");
    run.bind(id);
    while (run.step()) {
      const std::int64_t state = run.integer(2);
      if (state < 0 || state >= std::ssize(tries) || run.integer(1) < -2 || run.integer(1) >= std::ssize(tries) ||
          runs.size() == most_tries)
        return sink_.note(0, "a series of tries is left out, since a run of it is of a try that it hasn't");
      if (!has_room_for_tries()) return;
      runs.push_back({.place = std::ssize(runs) + 1,
                      .during = run.integer(1),
                      .state = state,
                      .run = run.integer(3),
                      .value = run.real(4),
                      .others = try_json(run, 5),
                      .wall_s = run.real(6),
                      .exit_status = static_cast<int>(std::clamp<std::int64_t>(run.integer(7), 0, 255))});
    }
    if (tries.empty()) return sink_.note(0, "a series of tries is left out, since it has no first state");
    if (has_room_for_tries()) sink_.tries({series, std::move(tries), std::move(runs)});
  }

  // Rows of `settings` (docs/database.md). Too long ones aren't Stepladder's.
  void read_views() {
    constexpr std::int64_t most = 1000, longest = 1 << 20;
    if (!has_columns("settings", {"key", "value"})) return;
    Statement rows(database_.get(),
                   "SELECT substr(key, 6), value FROM settings WHERE key > 'view:' AND key < 'view;' AND "
                   "length(CAST(value AS BLOB)) <= ? AND length(key) <= 505 ORDER BY key LIMIT ?",
                   longest, most);
    while (rows.step()) sink_.view(rows.text(0), rows.text(1));
  }

  bool has_columns(const std::string& table, std::initializer_list<const char*> names) {
    const std::set<std::string>& columns = tables_.columns(table);
    return std::ranges::all_of(names, [&](const char* name) { return columns.contains(name); });
  }

  void read_metrics(RunId run) {
    if (!has_columns("metrics", {"id", "run_id", "name"})) return;
    Statement rows(database_.get(),
                   "SELECT metrics.id, metrics.name, " +
                       tables_.list("metrics", {"unit", "direction", "section", "field"}) +
                       " FROM metrics WHERE metrics.run_id = ? ORDER BY metrics.name",
                   run);
    while (rows.step()) {
      const Metric metric{.name = rows.text(1),
                          .unit = rows.text(2),
                          .direction = value_or(direction_from, rows.text(3), Direction::unknown),
                          .section = rows.text(4),
                          .field = rows.text(5) == "loss" || rows.text(5) == "val_loss" ? rows.text(5) : ""};
      sink_.metric(metric, {});
      for (const char* const table : {"superseded_metric_values", "metric_values"})
        read_points(metric, table, rows.integer(0));
    }
  }

  // Passes on older attempts first: a later call gives a newer one.
  void read_points(const Metric& metric, const std::string& table, std::int64_t id) {
    constexpr std::size_t at_once = 4096;
    if (!has_columns(table, {"metric_id", "step", "value"})) return;
    const bool has_attempts = has_columns(table, {"attempt"});
    Statement rows(database_.get(),
                   "SELECT " + table + ".step, " + table + ".value, " + tables_.list(table, {"at_ms"}) + " FROM " +
                       table + " WHERE " + table + ".metric_id = ? ORDER BY " +
                       (has_attempts ? table + ".attempt, " : "") + table + ".step",
                   id);
    std::vector<MetricPoint> points;
    while (rows.step()) {
      points.push_back({.step = rows.integer(0),
                        .value = rows.is_null(1) ? std::numeric_limits<double>::quiet_NaN() : rows.real(1),
                        .at = rows.is_null(2) ? missing : rows.real(2) / 1e3});
      if (points.size() < at_once) continue;
      sink_.metric(metric, points);
      points.clear();
    }
    if (!points.empty()) sink_.metric(metric, points);
  }

  ForeignDatabase database_;
  PlainTables tables_;
  ImportSink& sink_;
  std::vector<StepTable> step_tables_;
  std::int64_t series_seen_ = 0;
  std::size_t try_bytes_ = 0;
  std::uint64_t left_out_ = 0;
  std::uint64_t bad_steps_ = 0;
};

bool is_project(const fs::path& file) {
  return is_sqlite_file(file) && ForeignDatabase(file).get().integer("PRAGMA application_id") == project_id;
}

}  // namespace

Importer importers::project() {
  return {.id = "stepladder",
          .title = "Stepladder project",
          .recognises = [](std::string_view, const fs::path& path) { return is_project(path); },
          .reader =
              [](const fs::path& path, const ImportOptions&, ImportSink& sink) {
                return database_reader(path, [path, &sink] {
                  if (!is_project(path)) throw ImportError("is not a Stepladder project");
                  ProjectFile(path, sink).read();
                });
              },
          .opens_file = true};
}

}  // namespace stepladder
