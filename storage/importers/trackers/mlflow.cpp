// MLflow's two stores: the SQL database (mlflow.db: mlflow/store/tracking/dbmodels/models.py) and the folder "mlruns"
// (EXPERIMENT/RUN/meta.yaml, metrics/NAME with lines "milliseconds value step", params/NAME, tags/NAME).
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>
#include <utility>

#include "storage/importers/growing_source.h"
#include "storage/importers/journal/journal_reader.h"
#include "storage/importers/trackers/foreign_database.h"
#include "storage/importers/trackers/foreign_run.h"
#include "storage/importers/trackers/store_folder.h"
#include "storage/json_values.h"
#include "storage/regular_file.h"
#include "storage/wording.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

double from_milliseconds(double ms) {
  return ms > 0 ? ms / 1000 : missing;
}

void set_status(Run& run, const std::string& status) {
  if (status == "FINISHED") {
    run.status = RunStatus::finished;
  } else if (status == "FAILED") {
    run.status = RunStatus::failed;
    run.reason = "the store says that the run failed";
  } else if (status == "KILLED") {
    run.status = RunStatus::stopped;
    run.reason = "the store says that the run was killed";
  } else {
    run.status = RunStatus::interrupted;
    run.reason = "the store says \"" + short_list({status}) +
                 "\": the run was still running or had been killed when it was imported";
  }
}

// Some of MLflow's own tags describe the run; its user's tags are part of the configuration.
struct Tags {
  Json facts = Json::object();

  void add(ForeignRun& run, const std::string& key, const std::string& value) {
    if (key == "mlflow.runName") {
      if (run.run.title.empty()) run.run.title = value;
    } else if (key == "mlflow.note.content") {
      run.run.changed = value;
    } else if (key == "mlflow.source.git.commit" || key == "mlflow.source.name" || key == "mlflow.user") {
      facts[key.substr(std::string_view("mlflow.").size())] = value;
    } else if (!key.starts_with("mlflow.")) {
      run.config["tags"][key] = value;
    }
  }

  void finish(ForeignRun& run) {
    if (!facts.empty()) run.run.environment = json_text(facts);
  }
};

void name_run(ForeignRun& run, const fs::path& store, const std::string& id) {
  if (run.run.title.empty()) run.run.title = id;
  run.run.stage = run.run.title;
  run.run.name = import_name(store, run.run.title);
}

// --- the database

// A column that is not null cannot hold NaN or infinity: the flag marks NaN, the largest double infinity.
double sql_value(const Statement& row, int value, int is_nan) {
  if (row.integer(is_nan) != 0) return std::numeric_limits<double>::quiet_NaN();
  const double number = row.real(value);
  if (is_missing(number)) return std::numeric_limits<double>::quiet_NaN();
  if (std::fabs(number) >= std::numeric_limits<double>::max()) return std::copysign(INFINITY, number);
  return number;
}

void add_settings(Database& database, const std::string& params, const std::string& tags_table, const std::string& id,
                  ForeignRun& run) {
  run.config = Json::object();
  Statement settings(database, "SELECT key, value FROM " + params + " WHERE run_uuid = ? ORDER BY key", id);
  while (settings.step()) run.config[settings.text(0)] = settings.text(1);
  Tags tags;
  Statement rows(database, "SELECT key, value FROM " + tags_table + " WHERE run_uuid = ? ORDER BY key", id);
  while (rows.step()) tags.add(run, rows.text(0), rows.text(1));
  tags.finish(run);
}

// A row of `runs`: its name, status, begin and end from `column` on.
ForeignRun run_in(const Statement& row, int column) {
  ForeignRun run;
  run.run.title = row.text(column);
  set_status(run.run, row.text(column + 1));
  run.run.started_at = from_milliseconds(static_cast<double>(row.integer(column + 2)));
  run.run.ended_at = from_milliseconds(static_cast<double>(row.integer(column + 3)));
  return run;
}

bool is_mlflow(ForeignDatabase& database) {
  return database.has_tables({"experiments", "runs", "metrics", "params", "tags"});
}

// log_metric() without a step gives 0 to each call.
void number_calls(ForeignRun& run) {
  CallCount count;
  run.metrics.number_calls(count);
  if (!count.has_steps && count.calls > 1)
    run.notes.push_back("no step was logged, so each call that logged \"" + short_list({count.leading}) +
                        "\" counts as one");
}

// The same of a part of a run; `state` is what the source knows of the parts before.
void number_calls(ForeignRun& run, Json& state) {
  const Json known = field_in(state, "calls");
  CallCount count;
  if (known.is_object())
    count = {known.value("leading", ""), std::max<std::int64_t>(integer_in(known, "calls"), 0),
             integer_in(known, "has_steps") != 0};
  run.metrics.number_calls(count);
  state["calls"] = {{"leading", count.leading}, {"calls", count.calls}, {"has_steps", count.has_steps ? 1 : 0}};
}

class MlflowDatabase {
 public:
  MlflowDatabase(const fs::path& file, ImportSink& sink) : file_(file), database_(file), sink_(sink) {}

  bool recognised() { return is_mlflow(database_); }

  void read() {
    const auto experiments =
        read_all(Statement(database_.get(), "SELECT experiment_id, name FROM experiments ORDER BY experiment_id"),
                 [](const Statement& row) { return std::pair(row.integer(0), row.text(1)); });
    runs_ = database_.indexed("runs", "experiment_id", "run_uuid, name, status, start_time, end_time, lifecycle_stage");
    params_ = database_.indexed("params", "run_uuid", "key, value");
    tags_ = database_.indexed("tags", "run_uuid", "key, value");
    metrics_ = database_.indexed("metrics", "run_uuid", "key, value, timestamp, step, is_nan");
    const std::int64_t deleted = database_.get().integer("SELECT count(*) FROM runs WHERE lifecycle_stage = 'deleted'");
    for (const auto& [id, name] : experiments) read_experiment(id, name);
    if (deleted > 0) sink_.note(0, plural(deleted, "deleted run was", "deleted runs were") + " left out");
    if (runs_read_ == 0) throw ImportError("is an MLflow store without runs");
  }

 private:
  void read_experiment(std::int64_t id, const std::string& name) {
    auto runs = read_all(Statement(database_.get(),
                                   "SELECT run_uuid, name, status, start_time, end_time FROM " + runs_ +
                                       " WHERE experiment_id = ? AND lifecycle_stage IS NOT 'deleted' ORDER BY "
                                       "start_time, run_uuid",
                                   id),
                         [](const Statement& row) { return std::pair(row.text(0), run_in(row, 1)); });
    LadderOfRuns ladder(name, sink_);
    for (auto& [run_id, run] : runs) {
      add_settings(database_.get(), params_, tags_, run_id, run);
      read_metrics(run_id, run);
      name_run(run, file_, run_id);
      ladder.add(std::move(run));
      ++runs_read_;
    }
    ladder.finish();
  }

  void read_metrics(const std::string& id, ForeignRun& run) {
    Statement rows(database_.get(),
                   "SELECT key, value, timestamp, step, is_nan FROM " + metrics_ +
                       " WHERE run_uuid = ? "
                       "ORDER BY key, timestamp, step",
                   id);
    while (rows.step())
      run.metrics.add(rows.text(0), rows.integer(3), sql_value(rows, 1, 4),
                      from_milliseconds(static_cast<double>(rows.integer(2))));
    number_calls(run);
  }

  fs::path file_;
  ForeignDatabase database_;
  ImportSink& sink_;
  std::string runs_, params_, tags_, metrics_;  // tables in which the rows of one experiment or run are found at once
  std::size_t runs_read_ = 0;
};

// --- the folder

constexpr std::int64_t largest_text = 1 << 20;

std::string text_of(const fs::path& file) {
  const RegularFile text(file, Links::refused);
  return text && text.size() <= largest_text ? text.read_at(0, largest_text) : "";
}

// meta.yaml is flat, "key: value" in each line, with quotes only where YAML needs them.
std::map<std::string, std::string> read_meta(const fs::path& folder) {
  std::map<std::string, std::string> meta;
  std::istringstream lines(text_of(folder / "meta.yaml"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos || line.starts_with(' ')) continue;
    std::string value = line.substr(colon + 2);
    if (value.size() >= 2 && (value.front() == '\'' || value.front() == '"') && value.back() == value.front()) {
      const std::string quote(value.front() == '\'' ? "''" : "\\\"");
      value = value.substr(1, value.size() - 2);
      for (std::size_t at = 0; (at = value.find(quote, at)) != std::string::npos; ++at) value.erase(at, 1);
    }
    meta[line.substr(0, colon)] = value == "null" ? "" : value;
  }
  return meta;
}

double number_or(const std::string& text, double otherwise) {
  double value = 0;
  return read_number(text, value) ? value : otherwise;
}

// The status that a store has as an integer or, since some version, by its name.
std::string status_named(const std::string& text) {
  static constexpr const char* names[] = {"", "RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED"};
  const double number = number_or(text, 0);
  return number >= 1 && number <= 5 ? names[static_cast<int>(number)] : text;
}

// Names may hold "/", so files are in nested folders. Links are left out: a folder from elsewhere could let them lead
// to any file of its reader's, whose text would become a parameter. Returns how many there are.
template <class Visit>
std::size_t for_each_file(const fs::path& folder, const Visit& visit) {
  std::error_code error;
  std::vector<fs::path> files;
  std::size_t links = 0;
  for (auto it = fs::recursive_directory_iterator(folder, error); it != fs::recursive_directory_iterator();
       it.increment(error)) {
    if (error) break;
    if (it->is_symlink(error))
      ++links;
    else if (it->is_regular_file(error))
      files.push_back(it->path());
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) visit(file.lexically_relative(folder).generic_string(), file);
  return links;
}

void note_links(std::size_t links, ForeignRun& run) {
  if (links > 0)
    run.notes.push_back("left out " + plural(links, "link") + ": what lies behind a link is no part of the store");
}

// "1764000000000 0.5 12" -> a point; false if it isn't one.
bool read_metric_line(const std::string& name, const std::string& line, ForeignRun& run) {
  std::istringstream words(line);
  std::string at, value, step;
  words >> at >> value >> step;
  double at_ms = 0, number = 0, step_number = 0;
  const bool whole = read_number(at, at_ms) && read_number(value, number) &&
                     (step.empty() || (read_number(step, step_number) && std::fabs(step_number) < 1e15));
  if (whole) run.metrics.add(name, static_cast<std::int64_t>(step_number), number, from_milliseconds(at_ms));
  return whole;
}

void read_metric_file(const std::string& name, const fs::path& file, ForeignRun& run) {
  RegularFile lines(file);
  std::uint64_t malformed = 0;
  for (std::string line; std::getline(lines, line);)
    if (!read_metric_line(name, line, run) && !line.empty()) ++malformed;
  if (malformed > 0)
    run.notes.push_back("metrics/" + short_list({name}) + ": " + "left out " + plural(malformed, "malformed line"));
}

// The facts of the run in the folder, without its numbers.
ForeignRun read_run_facts(const fs::path& folder) {
  ForeignRun run;
  run.config = Json::object();
  auto meta = read_meta(folder);
  run.run.title = meta["run_name"];
  set_status(run.run, status_named(meta["status"]));
  run.run.started_at = from_milliseconds(number_or(meta["start_time"], 0));
  run.run.ended_at = from_milliseconds(number_or(meta["end_time"], 0));
  std::size_t links = for_each_file(
      folder / "params", [&](const std::string& name, const fs::path& file) { run.config[name] = text_of(file); });
  Tags tags;
  links += for_each_file(folder / "tags",
                         [&](const std::string& name, const fs::path& file) { tags.add(run, name, text_of(file)); });
  tags.finish(run);
  links += for_each_file(folder / "metrics", [](const std::string&, const fs::path&) {});
  note_links(links, run);
  return run;
}

ForeignRun read_run_folder(const fs::path& folder) {
  ForeignRun run = read_run_facts(folder);
  for_each_file(folder / "metrics",
                [&](const std::string& name, const fs::path& file) { read_metric_file(name, file, run); });
  number_calls(run);
  return run;
}

bool is_run_folder(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "meta.yaml", error) && fs::is_directory(folder / "metrics", error);
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(error) && !entry.path().filename().string().starts_with('.')) found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

bool is_experiment_folder(const fs::path& folder) {
  const std::vector<fs::path> inner = folders_in(folder);
  return fs::exists(folder / "meta.yaml") && std::ranges::any_of(inner, is_run_folder);
}

void read_experiment_folder(const fs::path& folder, const fs::path& store, ImportSink& sink) {
  struct Entry {
    double started_at;
    fs::path folder;
  };
  std::vector<Entry> entries;
  std::size_t deleted = 0;
  for (const fs::path& inner : folders_in(folder)) {
    if (!is_run_folder(inner)) continue;
    auto meta = read_meta(inner);
    if (meta["lifecycle_stage"] == "deleted")
      ++deleted;
    else
      entries.push_back({number_or(meta["start_time"], 0), inner});
  }
  std::ranges::stable_sort(entries, {}, &Entry::started_at);
  const std::string name = read_meta(folder)["name"];
  LadderOfRuns ladder(name.empty() ? folder.filename().string() : name, sink);
  for (const Entry& entry : entries) {
    ForeignRun run = read_run_folder(entry.folder);
    name_run(run, store, entry.folder.filename().string());
    ladder.add(std::move(run));
  }
  ladder.finish();
  if (deleted > 0) sink.note(0, plural(deleted, "deleted run was", "deleted runs were") + " left out");
}

bool has_ended(const Run& run) {
  return run.status != RunStatus::interrupted;
}

// The piece of a run without new numbers; the store always gives the facts.
SourcePiece piece_of(ForeignRun facts, const SourcePosition& from, const fs::path& store, const std::string& id) {
  SourcePiece piece{.news = std::move(facts), .end = from};
  if (!piece.end.state.is_object()) piece.end.state = Json::object();
  name_run(piece.news, store, id);
  piece.has_ended = has_ended(piece.news.run);
  return piece;
}

class GrowingMlflowFolder : public GrowingSource {
 public:
  explicit GrowingMlflowFolder(fs::path folder) : GrowingSource("mlflow", std::move(folder)) {}

  std::vector<fs::path> files() const override {
    std::vector<fs::path> files{path() / "meta.yaml"};
    for_each_file(path() / "metrics", [&](const std::string&, const fs::path& file) { files.push_back(file); });
    return files;
  }

  SourcePiece read(const SourcePosition& from, bool impatient) override {
    SourcePiece piece = piece_of(read_run_facts(path()), from, path().parent_path().parent_path(), name());
    Json& marks = piece.end.state["files"];
    if (!marks.is_object()) marks = Json::object();
    std::int64_t taken = 0;
    for_each_file(path() / "metrics", [&](const std::string& name, const fs::path& file) {
      if (!piece.replaced.empty()) return;
      const Json mark = field_in(marks, name.c_str());
      const RegularFile lines(file);
      if (!lines) return;
      if (const std::string why = replaced_since(lines, mark); !why.empty()) {
        piece.replaced = "metrics/" + short_list({name}) + " " + why;
        return;
      }
      const std::int64_t begin = integer_in(mark, "bytes");
      const std::int64_t end = read_lines(name, lines, begin, taken, piece, impatient);
      if (end > begin) marks[name] = mark_of(lines, end);
      taken += end - begin;
    });
    if (taken > 0) number_calls(piece.news, piece.end.state);
    piece.end.amount += taken;
    piece.has_ended = piece.has_ended && !piece.more;
    return piece;
  }

  void finish_idle(Run& run) const override { set_status(run, "RUNNING"); }

 private:
  // The whole lines from `begin` on, as far as the piece has room. Returns where they end.
  static std::int64_t read_lines(const std::string& name, const RegularFile& lines, std::int64_t begin,
                                 std::int64_t taken, SourcePiece& piece, bool impatient) {
    const auto room = static_cast<std::int64_t>(source_piece_bytes) - taken;
    const std::int64_t size = lines.size();
    if (size == begin) return begin;
    if (room <= 0) {
      piece.more = true;
      return begin;
    }
    const std::string bytes = lines.read_at(begin, static_cast<std::size_t>(room));
    std::int64_t end = begin;
    for (std::size_t at = 0, line_end; (line_end = bytes.find('\n', at)) != std::string::npos; at = line_end + 1) {
      const std::string line = bytes.substr(at, line_end - at);
      if (!read_metric_line(name, line, piece.news) && !impatient) {  // zeros that NFS shows for a while
        piece.is_stuck = true;
        return end;
      }
      end = begin + static_cast<std::int64_t>(line_end) + 1;
    }
    piece.more = piece.more || (end > begin && end < size && std::ssize(bytes) == room);
    return end;
  }
};

// The changes in a database since the last look, found by one query for all of its runs.
class MlflowNews {
 public:
  explicit MlflowNews(fs::path file) : file_(std::move(file)) {}

  struct State {
    std::int64_t last_row = 0;  // of its metrics
    std::int64_t started_ms = 0;
    std::string status;
    bool operator==(const State&) const = default;
  };

  const fs::path& file() const { return file_; }

  const std::map<std::string, State>& runs() {
    std::string stamp = stamp_of({file_, file_.string() + "-wal"});
    if (stamp == stamp_) return runs_;
    ForeignDatabase database(file_, ForeignDatabase::Writer::at_work);
    {
      Statement rows(
          database.get(),
          "SELECT run_uuid, status, name, end_time, start_time FROM runs WHERE lifecycle_stage IS NOT 'deleted'");
      while (rows.step()) {
        State& state = runs_[rows.text(0)];
        state.status = rows.text(1) + " " + rows.text(2) + " " + rows.text(3);
        state.started_ms = rows.integer(4);
      }
    }
    Statement rows(database.get(), "SELECT run_uuid, max(rowid) FROM metrics WHERE rowid > ? GROUP BY run_uuid",
                   last_row_);
    while (rows.step()) {
      if (const auto run = runs_.find(rows.text(0)); run != runs_.end()) run->second.last_row = rows.integer(1);
      last_row_ = std::max(last_row_, rows.integer(1));
    }
    database.check();
    stamp_ = std::move(stamp);
    return runs_;
  }

 private:
  const fs::path file_;
  std::string stamp_ = "?";
  std::int64_t last_row_ = 0;
  std::map<std::string, State> runs_;
};

// One run of a database. Its position is the number of the last row of `metrics` that was taken.
class GrowingMlflowRun : public GrowingSource {
 public:
  GrowingMlflowRun(std::shared_ptr<MlflowNews> news, std::string id)
      : GrowingSource("mlflow", news->file(), id), news_(std::move(news)), id_(std::move(id)) {}

  std::string name() const override { return id_; }
  std::vector<fs::path> files() const override { return {path(), path().string() + "-wal"}; }
  bool began_since(double at) override {
    const auto& runs = news_->runs();
    const auto now = runs.find(id_);
    return now != runs.end() && static_cast<double>(now->second.started_ms) / 1000 >= at;
  }
  bool has_changed() override {
    const auto& runs = news_->runs();
    const auto now = runs.find(id_);
    if (now == runs.end() || now->second == seen_) return false;
    seen_ = now->second;
    return true;
  }

  SourcePiece read(const SourcePosition& from, bool) override {
    ForeignDatabase database(path(), ForeignDatabase::Writer::at_work);
    Transaction one_state(database.get(), Transaction::Kind::read);
    SourcePiece piece = piece_of(facts(database.get()), from, path(), id_);
    const std::string last = text_in(from.state, "last");
    if (from.amount > 0 && row_text(database.get(), from.amount) != last) {
      piece.replaced = "no longer holds the row that was read last";
      return piece;
    }
    Statement rows(database.get(),
                   "SELECT rowid, key, value, timestamp, step, is_nan FROM metrics WHERE run_uuid = ? AND rowid > ? "
                   "ORDER BY rowid LIMIT ?",
                   id_, from.amount, source_piece_rows);
    std::int64_t taken = 0;
    while (rows.step()) {
      piece.news.metrics.add(rows.text(1), rows.integer(4), sql_value(rows, 2, 5),
                             from_milliseconds(static_cast<double>(rows.integer(3))));
      piece.end.amount = rows.integer(0);
      ++taken;
    }
    piece.more = taken == source_piece_rows;
    piece.has_ended = piece.has_ended && !piece.more;
    if (taken > 0) {
      piece.end.state["last"] = row_text(database.get(), piece.end.amount);
      number_calls(piece.news, piece.end.state);
    }
    one_state.commit();
    database.check();
    return piece;
  }

  void finish_idle(Run& run) const override { set_status(run, "RUNNING"); }

 private:
  ForeignRun facts(Database& database) const {
    Statement row(database, "SELECT name, status, start_time, end_time FROM runs WHERE run_uuid = ?", id_);
    ForeignRun run = row.step() ? run_in(row, 0) : ForeignRun();
    add_settings(database, "params", "tags", id_, run);
    return run;
  }

  static std::string row_text(Database& database, std::int64_t number) {
    Statement row(database, "SELECT run_uuid, key, step, timestamp FROM metrics WHERE rowid = ?", number);
    return row.step() ? row.text(0) + " " + row.text(1) + " " + row.text(2) + " " + row.text(3) : "";
  }

  const std::shared_ptr<MlflowNews> news_;
  const std::string id_;
  MlflowNews::State seen_{.status = "?"};
};

}  // namespace

bool is_mlflow_run_folder(const fs::path& folder) {
  return is_run_folder(folder);
}

std::unique_ptr<GrowingSource> growing_mlflow_folder(const fs::path& run_folder) {
  return std::make_unique<GrowingMlflowFolder>(run_folder);
}

std::shared_ptr<GrowingDatabase> growing_mlflow_database(const fs::path& file) {
  ForeignDatabase database(file, ForeignDatabase::Writer::at_work);
  const bool is_ours = is_mlflow(database);
  database.check();
  return is_ours ? std::make_shared<GrowingRuns<MlflowNews, GrowingMlflowRun>>(std::make_shared<MlflowNews>(file))
                 : nullptr;
}

Importer importers::mlflow() {
  return {.id = "mlflow",
          .title = "MLflow database",
          .recognises =
              [](std::string_view, const fs::path& path) {
                return is_sqlite_file(path) &&
                       ForeignDatabase(path).has_tables({"experiments", "runs", "metrics", "latest_metrics"});
              },
          .reader =
              [](const fs::path& path, const ImportOptions&, ImportSink& sink) {
                return database_reader(path, [path, &sink] {
                  MlflowDatabase store(path, sink);
                  if (!store.recognised()) throw ImportError("is not an MLflow database: its tables differ");
                  store.read();
                });
              },
          .opens_file = true};
}

bool is_mlflow_folder(const fs::path& folder) {
  const std::vector<fs::path> inner = folders_in(folder);
  return is_experiment_folder(folder) || std::ranges::any_of(inner, is_experiment_folder);
}

void read_mlflow_folder(const fs::path& folder, ImportSink& sink) {
  if (is_experiment_folder(folder)) {
    read_experiment_folder(folder, folder, sink);
    return;
  }
  bool any = false;
  for (const fs::path& inner : folders_in(folder)) {
    if (!is_experiment_folder(inner)) continue;
    read_experiment_folder(inner, folder, sink);
    any = true;
  }
  if (!any) throw ImportError("holds no MLflow runs");
}

}  // namespace stepladder
