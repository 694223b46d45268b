// Trackio's store: one SQLite file per project (trackio/sqlite_storage.py). Each row of `metrics` is one call of log(),
// as JSON; older files identify runs by name only, newer ones by an id.
#include <map>
#include <utility>

#include "storage/importers/growing_source.h"
#include "storage/importers/trackers/foreign_database.h"
#include "storage/importers/trackers/foreign_run.h"
#include "storage/importers/trackers/step_choice.h"
#include "storage/importers/trackers/store_folder.h"
#include "storage/json_values.h"
#include "storage/wording.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

bool has_trackio_tables(ForeignDatabase& database) {
  if (!database.has_tables({"metrics"})) return false;
  for (const char* column : {"timestamp", "run_name", "step", "metrics"})
    if (!database.has_column("metrics", column)) return false;
  return true;
}

void add_config(const std::string& text, ForeignRun& run) {
  const Json config = json_or_text(text);
  if (!config.is_object()) return;
  for (const auto& [name, value] : config.items()) {
    if (name == "_Created" && value.is_string()) run.run.created_at = unix_from_iso(value.get<std::string>());
    if (name == "_Group" && value.is_string()) run.run.environment = Json{{"group", value}}.dump();
    if (!name.starts_with('_')) run.config[name] = value;
  }
}

// The numbers of one call of log(); false if the row has no JSON object.
bool add_row(const std::string& timestamp, std::int64_t step, const std::string& metrics, StepChoice& steps,
             ForeignRun& run) {
  const Json values = json_or_text(metrics);
  if (!values.is_object()) return false;
  LoggedRow row{.counted = step, .at = unix_from_iso(timestamp)};
  for (const auto& [name, value] : values.items()) {
    double number = 0;
    if (value.is_number())
      number = value.get<double>();
    else if (!value.is_string() || !read_number(value.get_ref<const std::string&>(), number))
      continue;
    row.values.emplace_back(name, number);
  }
  steps.add(std::move(row), run.metrics);
  return true;
}

class TrackioDatabase {
 public:
  TrackioDatabase(const fs::path& file, std::string step_key, ImportSink& sink)
      : file_(file), database_(file), step_key_(std::move(step_key)), sink_(sink) {}

  bool recognised() { return has_trackio_tables(database_); }

  void read() {
    key_ = database_.has_column("metrics", "run_id") ? "run_id" : "run_name";
    const auto runs =
        read_all(Statement(database_.get(),
                           "SELECT " + key_ + ", max(run_name) FROM metrics GROUP BY 1 ORDER BY min(timestamp), 1"),
                 [](const Statement& row) { return std::pair(row.text(0), row.text(1)); });
    if (runs.empty()) throw ImportError("is a Trackio store without runs");
    LadderOfRuns ladder(file_.stem().string(), sink_);
    has_ids_ = database_.has_column("metrics", "id");
    metrics_ = database_.indexed("metrics", key_, std::string("timestamp, step, metrics") + (has_ids_ ? ", id" : ""));
    if (database_.has_tables({"configs"}) && database_.has_column("configs", "config")) {
      config_key_ = database_.has_column("configs", "run_id") ? "run_id" : "run_name";
      if (database_.has_column("configs", config_key_)) configs_ = database_.indexed("configs", config_key_, "config");
    }
    for (const auto& [key, name] : runs) {
      ForeignRun run;
      // The store doesn't record how a run ended.
      run.run.status = RunStatus::finished;
      run.run.title = run.run.stage = name;
      run.run.name = import_name(file_, name);
      read_config(key, run);
      read_metrics(key, run);
      ladder.add(std::move(run));
    }
    ladder.finish();
  }

 private:
  void read_config(const std::string& key, ForeignRun& run) {
    run.config = Json::object();
    if (configs_.empty()) return;
    Statement rows(database_.get(), "SELECT config FROM " + configs_ + " WHERE " + config_key_ + " = ?", key);
    if (rows.step()) add_config(rows.text(0), run);
  }

  void read_metrics(const std::string& key, ForeignRun& run) {
    Statement rows(database_.get(),
                   "SELECT timestamp, step, metrics FROM " + metrics_ + " WHERE " + key_ + " = ? ORDER BY " +
                       (has_ids_ ? "id" : "rowid"),
                   key);
    std::uint64_t malformed = 0;
    StepChoice steps(step_key_);
    while (rows.step())
      if (!add_row(rows.text(0), rows.integer(1), rows.text(2), steps, run)) ++malformed;
    steps.flush(run.metrics);
    if (std::string note = steps.note(); !note.empty()) run.notes.push_back(std::move(note));
    if (malformed > 0) run.notes.push_back("left out " + plural(malformed, "row") + " without a JSON object");
  }

  fs::path file_;
  ForeignDatabase database_;
  const std::string step_key_;
  ImportSink& sink_;
  std::string key_;
  std::string metrics_, configs_, config_key_;  // tables in which a run's rows are found at once; empty: none
  bool has_ids_ = false;
};

// The changes in a database since the last look, found by one query for all of its runs.
class TrackioNews {
 public:
  TrackioNews(fs::path file, std::string step_key, ForeignDatabase& database)
      : file_(std::move(file)),
        step_key_(std::move(step_key)),
        key_(database.has_column("metrics", "run_id") ? "run_id" : "run_name") {
    has_configs_ = database.has_tables({"configs"}) && database.has_column("configs", "config") &&
                   database.has_column("configs", key_);
  }

  const fs::path& file() const { return file_; }
  const std::string& step_key() const { return step_key_; }  // as in ImportOptions
  const std::string& key() const { return key_; }            // the column that tells runs apart
  bool has_configs() const { return has_configs_; }

  // The last row of each run.
  const std::map<std::string, std::int64_t>& runs() {
    std::string stamp = stamp_of({file_, file_.string() + "-wal"});
    if (stamp == stamp_) return runs_;
    ForeignDatabase database(file_, ForeignDatabase::Writer::at_work);
    Statement rows(database.get(), "SELECT " + key_ + ", max(rowid) FROM metrics WHERE rowid > ? GROUP BY 1",
                   last_row_);
    while (rows.step()) {
      runs_[rows.text(0)] = rows.integer(1);
      last_row_ = std::max(last_row_, rows.integer(1));
    }
    database.check();
    stamp_ = std::move(stamp);
    return runs_;
  }

 private:
  const fs::path file_;
  const std::string step_key_;
  const std::string key_;
  bool has_configs_ = false;
  std::string stamp_ = "?";
  std::int64_t last_row_ = 0;
  std::map<std::string, std::int64_t> runs_;
};

// One run of a database. Its position is the number of the last row of `metrics` that was taken.
class GrowingTrackioRun : public GrowingSource {
 public:
  GrowingTrackioRun(std::shared_ptr<TrackioNews> news, std::string id)
      : GrowingSource("trackio", news->file(), id), news_(std::move(news)), id_(std::move(id)) {}

  std::string name() const override { return id_; }
  std::vector<fs::path> files() const override { return {path(), path().string() + "-wal"}; }
  bool began_since(double at) override {
    ForeignDatabase database(path(), ForeignDatabase::Writer::at_work);
    Statement row(database.get(), "SELECT min(timestamp) FROM metrics WHERE " + news_->key() + " = ?", id_);
    const double began = row.step() ? unix_from_iso(row.text(0)) : missing;
    database.check();
    return began >= at;
  }
  bool has_changed() override {
    const auto& runs = news_->runs();
    const auto now = runs.find(id_);
    return now != runs.end() && now->second != std::exchange(seen_, now->second);
  }

  SourcePiece read(const SourcePosition& from, bool) override {
    ForeignDatabase database(path(), ForeignDatabase::Writer::at_work);
    Transaction one_state(database.get(), Transaction::Kind::read);
    SourcePiece piece{.news = {}, .end = from};
    const std::string last = text_in(from.state, "last");
    if (from.amount > 0 && row_text(database.get(), from.amount) != last) {
      piece.replaced = "no longer holds the row that was read last";
      return piece;
    }
    piece.news.config = Json::object();
    if (news_->has_configs()) {
      Statement config(database.get(), "SELECT config FROM configs WHERE " + news_->key() + " = ?", id_);
      if (config.step()) add_config(config.text(0), piece.news);
    }
    // Selects by row and not by an index of the runs: what other runs have logged since is little.
    Statement rows(database.get(),
                   "SELECT rowid, timestamp, step, metrics, run_name FROM metrics WHERE rowid > ? AND +" +
                       news_->key() + " = ? ORDER BY rowid LIMIT ?",
                   from.amount, id_, source_piece_rows);
    StepChoice steps(news_->step_key(), field_in(from.state, "step_choice"));
    std::int64_t taken = 0;
    std::size_t bytes = 0;
    while (bytes < source_piece_bytes && rows.step()) {
      const std::string metrics = rows.text(3);
      add_row(rows.text(1), rows.integer(2), metrics, steps, piece.news);
      piece.news.run.title = piece.news.run.stage = rows.text(4);
      piece.end.amount = rows.integer(0);
      bytes += metrics.size();
      ++taken;
    }
    steps.flush(piece.news.metrics);
    piece.more = taken == source_piece_rows || bytes >= source_piece_bytes;
    if (!piece.news.run.title.empty()) piece.news.run.name = import_name(path(), piece.news.run.title);
    if (taken > 0)
      piece.end.state = {{"last", row_text(database.get(), piece.end.amount)}, {"step_choice", steps.state()}};
    return piece;
  }

  void finish_idle(Run& run) const override {
    run.status = RunStatus::finished;
    run.reason = "Trackio's databases don't say how a run ended";
  }

 private:
  std::string row_text(Database& database, std::int64_t number) const {
    Statement row(database, "SELECT " + news_->key() + ", step, timestamp FROM metrics WHERE rowid = ?", number);
    return row.step() ? row.text(0) + " " + row.text(1) + " " + row.text(2) : "";
  }

  const std::shared_ptr<TrackioNews> news_;
  const std::string id_;
  std::int64_t seen_ = -1;
};

}  // namespace

std::shared_ptr<GrowingDatabase> growing_trackio_database(const fs::path& file, const std::string& step_key) {
  ForeignDatabase database(file, ForeignDatabase::Writer::at_work);
  if (!has_trackio_tables(database)) return nullptr;
  auto news = std::make_shared<TrackioNews>(file, step_key, database);
  database.check();
  return std::make_shared<GrowingRuns<TrackioNews, GrowingTrackioRun>>(std::move(news));
}

Importer importers::trackio() {
  return {.id = "trackio",
          .title = "Trackio database",
          .recognises =
              [](std::string_view, const fs::path& path) {
                if (!is_sqlite_file(path)) return false;
                ForeignDatabase database(path);
                return has_trackio_tables(database);
              },
          .reader =
              [](const fs::path& path, const ImportOptions& options, ImportSink& sink) {
                return database_reader(path, [path, step_key = options.step_key, &sink] {
                  TrackioDatabase store(path, step_key, sink);
                  if (!store.recognised()) throw ImportError("is not a Trackio database: its tables differ");
                  store.read();
                });
              },
          .opens_file = true};
}

}  // namespace stepladder
