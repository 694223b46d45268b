// Trackio's store: one SQLite file per project (trackio/sqlite_storage.py). Each row of `metrics` is one call of log(),
// as JSON; older files identify runs by name only, newer ones by an id.
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "storage/importers/trackers/byte_stream.h"
#include "storage/importers/trackers/foreign_database.h"
#include "storage/importers/trackers/foreign_run.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

bool has_trackio_tables(ForeignDatabase& database) {
  if (!database.has_tables({"metrics"})) return false;
  for (const char* column : {"timestamp", "run_name", "step", "metrics"})
    if (!database.has_column("metrics", column)) return false;
  return true;
}

class TrackioDatabase {
 public:
  TrackioDatabase(const fs::path& file, ImportSink& sink) : file_(file), database_(file), sink_(sink) {}

  bool recognised() { return has_trackio_tables(database_); }

  void read() {
    key_ = database_.has_column("metrics", "run_id") ? "run_id" : "run_name";
    struct Row {
      std::string key;
      std::string name;
    };
    std::vector<Row> runs;
    {
      Statement rows(database_.get(),
                     "SELECT " + key_ + ", max(run_name) FROM metrics GROUP BY 1 ORDER BY min(timestamp), 1");
      while (rows.step()) runs.push_back({rows.text(0), rows.text(1)});
    }
    if (runs.empty()) throw ImportError("is a Trackio store without runs");
    LadderOfRuns ladder(file_.stem().string(), sink_);
    has_ids_ = database_.has_column("metrics", "id");
    metrics_ = database_.indexed("metrics", key_, std::string("timestamp, step, metrics") + (has_ids_ ? ", id" : ""));
    if (database_.has_tables({"configs"}) && database_.has_column("configs", "config")) {
      config_key_ = database_.has_column("configs", "run_id") ? "run_id" : "run_name";
      if (database_.has_column("configs", config_key_)) configs_ = database_.indexed("configs", config_key_, "config");
    }
    for (const Row& row : runs) {
      ForeignRun run;
      // The store doesn't record how a run ended.
      run.run.status = RunStatus::finished;
      run.run.title = run.run.stage = row.name;
      run.run.name = import_name(file_, row.name);
      read_config(row.key, run);
      read_metrics(row.key, run);
      ladder.tell(std::move(run));
    }
    ladder.finish();
  }

 private:
  void read_config(const std::string& key, ForeignRun& run) {
    run.config = Json::object();
    if (configs_.empty()) return;
    Statement rows(database_.get(), "SELECT config FROM " + configs_ + " WHERE " + config_key_ + " = ?");
    rows.bind(key);
    if (!rows.step()) return;
    const Json config = json_or_text(rows.text(0));
    if (!config.is_object()) return;
    for (const auto& [name, value] : config.items()) {
      if (name == "_Created" && value.is_string()) run.run.created_at = unix_from_iso(value.get<std::string>());
      if (name == "_Group" && value.is_string()) run.run.environment = Json{{"group", value}}.dump();
      if (!name.starts_with('_')) run.config[name] = value;
    }
  }

  void read_metrics(const std::string& key, ForeignRun& run) {
    Statement rows(database_.get(), "SELECT timestamp, step, metrics FROM " + metrics_ + " WHERE " + key_ +
                                        " = ? ORDER BY " + (has_ids_ ? "id" : "rowid"));
    rows.bind(key);
    std::uint64_t malformed = 0;
    while (rows.step()) {
      const Json values = json_or_text(rows.text(2));
      if (!values.is_object()) {
        ++malformed;
        continue;
      }
      const double at = unix_from_iso(rows.text(0));
      for (const auto& [name, value] : values.items()) {
        double number = 0;
        if (value.is_number())
          number = value.get<double>();
        else if (!value.is_string() || !read_number(value.get_ref<const std::string&>(), number))
          continue;
        run.metrics.add(name, rows.integer(1), number, at);
      }
    }
    if (malformed > 0) run.notes.push_back("left out " + times(malformed, "row", "rows") + " without a JSON object");
  }

  fs::path file_;
  ForeignDatabase database_;
  ImportSink& sink_;
  std::string key_;
  std::string metrics_, configs_, config_key_;  // tables in which a run's rows are found at once; empty: none
  bool has_ids_ = false;
};

}  // namespace

Importer importers::trackio() {
  return {.id = "trackio",
          .title = "Trackio database",
          .recognises =
              [](ImportInput& input) {
                if (!is_sqlite(input.head()) || input.path().empty()) return false;
                ForeignDatabase database(input.path());
                return has_trackio_tables(database);
              },
          .read =
              [](ImportInput& input, const ImportOptions&, ImportSink& sink) {
                if (input.path().empty()) throw ImportError("is a database, which can only be read from a file");
                TrackioDatabase store(input.path(), sink);
                if (!store.recognised()) throw ImportError("is not a Trackio database: its tables differ");
                store.read();
              }};
}

}  // namespace stepladder
