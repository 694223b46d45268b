// The order of a rescue: schema, version, a new file of that version, rows table by table, lost pages, then the runs'
// consistency (rescued_runs.h). It never opens the damaged file with SQLite and never writes to it; the new file gets
// its name at the end.
#include "storage/database/rescue/rescue.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "storage/database/database.h"
#include "storage/database/rescue/page_file.h"
#include "storage/database/rescue/rescued_runs.h"
#include "storage/database/rescue/tree_reader.h"
#include "storage/database/run_rows.h"
#include "storage/database/run_store.h"
#include "storage/database/schema.h"
#include "storage/database/schema_check.h"
#include "storage/own_folder.h"
#include "storage/wording.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void fail_to_write(const fs::path& file) {
  throw StorageError(file.string() + " could not be written: " + std::generic_category().message(errno));
}

// Open databases of SQLite hold a lock on these bytes.
void refuse_an_open_file(const fs::path& file) {
  const ByteFile opened(file);
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = 0x4000'0000;
  lock.l_len = 512;
  if (::fcntl(opened.descriptor(), F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return;
  throw StorageError(fmt::format(
      "{} is open in another process (pid {}): end it first, so that the file doesn't change while it is read",
      file.string(), lock.l_pid));
}

// A file beside `out` that gets its name when it is whole; else it is removed, with all that SQLite puts beside it.
class FileToBe {
 public:
  explicit FileToBe(const fs::path& out) : out_(fs::absolute(out)) {
    if (fs::symlink_status(out_).type() != fs::file_type::not_found)
      throw StorageError(out.string() + " exists already");
    std::string name = out_.string() + ".XXXXXX";
    const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);  // mode 0600
    if (descriptor < 0) fail_to_write(out);
    ::close(descriptor);
    file_ = name;
  }
  ~FileToBe() {
    std::error_code error;
    const std::string name = file_.filename().string();
    for (const auto& entry : fs::directory_iterator(file_.parent_path(), error))
      if (entry.path().filename().string().starts_with(name)) fs::remove(entry.path(), error);
  }
  FileToBe(const FileToBe&) = delete;
  FileToBe& operator=(const FileToBe&) = delete;

  const fs::path& file() const { return file_; }

  void finish() {
    if (!sync_to_disk(file_)) fail_to_write(file_);
    if (!name_new_file(file_, out_)) {
      if (errno == EEXIST) throw StorageError(out_.string() + " exists already");
      fail_to_write(out_);
    }
    if (!sync_to_disk(out_.parent_path())) fail_to_write(out_.parent_path());
  }

 private:
  fs::path out_;
  fs::path file_;
};

// sqlite_master has no entry of its own.
const TableShape& schema_shape() {
  using Holds = ShapeColumn::Holds;
  static const TableShape shape{.name = "sqlite_master",
                                .columns = {{"type", Holds::text, true},
                                            {"name", Holds::text, true},
                                            {"tbl_name", Holds::text, true},
                                            {"rootpage", Holds::numbers},
                                            {"sql", Holds::text}},
                                .fewest_values = 5};
  return shape;
}

struct FoundObject {
  std::string kind;
  std::uint32_t root = 0;
  std::string definition;  // normalised
};

// The schema's objects by name, from the pages that page 1 refers to, and from lost ones if it is damaged.
std::map<std::string, FoundObject> read_schema(PageFile& file) {
  std::map<std::string, FoundObject> objects;
  const auto keep = [&](const RawRow& row) {
    const std::string kind(row.values[0].bytes);
    if (kind != "table" && kind != "index" && kind != "view" && kind != "trigger") return;
    const std::int64_t root = row.values[3].integer;
    objects[std::string(row.values[1].bytes)] = {
        .kind = kind,
        .root = root > 1 && root <= file.pages() ? static_cast<std::uint32_t>(root) : 0,
        .definition = normalised_definition(std::string(row.values[4].bytes))};
  };
  bool damaged = false;
  TreeReader reader(file);
  const auto note_damage = [&] { damaged = true; };
  reader.read_tree(1, &schema_shape(), {.row = keep, .damaged_row = note_damage, .damaged_page = note_damage});
  if (damaged) reader.read_lost_pages({&schema_shape()}, [&](const TableShape&, const RawRow& row) { keep(row); });
  return objects;
}

// Creates the schema of a file of this version; RunStore brings it up to date.
void create_version(Database& database, std::size_t version) {
  Transaction whole(database);
  create_schema(database, migrations().first(version));
  whole.commit();
}

// The version whose objects the file has most of; 0 if it has none.
std::size_t version_by_schema(const std::map<std::string, FoundObject>& objects) {
  std::size_t best = 0;
  std::ptrdiff_t most = 0;
  for (std::size_t version = 1; version <= migrations().size(); ++version) {
    Database fresh{Database::InMemory()};
    create_version(fresh, version);
    std::ptrdiff_t fitting = 0;
    for (const SchemaObject& object : schema_objects(fresh)) {
      const auto found = objects.find(object.name);
      fitting += found == objects.end() ? -1 : found->second.definition == object.text ? 2 : 0;
    }
    if (fitting > most) best = version, most = fitting;
  }
  return best;
}

void bind_value(Statement& statement, const Value& value) {
  switch (value.kind) {
    case Value::Kind::null:
      statement.bind(std::nullopt);
      break;
    case Value::Kind::integer:
      statement.bind(value.integer);
      break;
    case Value::Kind::real:
      statement.bind(value.real);
      break;
    case Value::Kind::text:
      statement.bind(value.bytes);
      break;
    case Value::Kind::blob:
      statement.bind(Blob{value.bytes});
      break;
  }
}

// Copies rows into tables of the same columns. A row that is there already, or that breaks a rule, isn't stored.
class RowCopier {
 public:
  explicit RowCopier(Database& database) : database_(database) {}

  bool copy(const TableShape& shape, const RawRow& row) {
    Statement insert(database_, insert_of(shape, row.values.size()));
    for (std::size_t i = 0; i < row.values.size(); ++i) {
      if (shape.columns[i].is_rowid)
        insert.bind(row.rowid);
      else
        bind_value(insert, row.values[i]);
    }
    insert.run();
    return database_.changes() == 1;
  }

 private:
  const std::string& insert_of(const TableShape& shape, std::size_t values) {
    std::string& sql = inserts_[{&shape, values}];
    if (!sql.empty()) return sql;
    std::string places;
    for (std::size_t i = 0; i < values; ++i) {
      sql += (i == 0 ? "INSERT OR IGNORE INTO " + shape.name + " (" : ", ") + shape.columns[i].name;
      places += i == 0 ? "?" : ", ?";
    }
    return sql += ") VALUES (" + places + ")";
  }

  Database& database_;
  std::map<std::pair<const TableShape*, std::size_t>, std::string> inserts_;
};

// The second is there while a file is being brought up to date.
bool holds_steps(const TableShape& shape) {
  return shape.name == "steps" || shape.name == "steps_to_move";
}

// Its columns of settings are JSON.
bool has_damaged_settings(const TableShape& shape, const RawRow& row) {
  if (shape.name != "runs") return false;
  const std::size_t column = shape.index_of("recipe");
  if (column >= row.values.size()) return false;
  const std::string_view recipe = row.values[column].bytes;
  return recipe.starts_with('{') && !nlohmann::json::accept(recipe);
}

bool is_derived(const std::string& table) {
  return table == "summaries" || table == "overviews" || table == "overview_chunks" || table == "requests" ||
         table == "queue" || table == "metric_figures" || table == "metric_overviews" || table == "followed" ||
         table == "far_runs" || table == "far_members";
}

class Rescue {
 public:
  Rescue(const fs::path& damaged, std::function<bool()> is_stopped)
      : name_(damaged), file_(damaged), is_stopped_(std::move(is_stopped)) {}

  // `out` is an empty file.
  RescueReport copy_to(const fs::path& out) {
    objects_ = read_schema(file_);
    const std::size_t version = version_of_file();
    Database database(out, Database::Mode::read_write);
    database.execute(fmt::format("PRAGMA page_size = {}", file_.page_size()));
    create_version(database, version);
    database.execute("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF");  // it is synced as a whole at its end
    shapes_ = table_shapes(database);
    note_strangers(database);
    {
      Transaction whole(database);
      copy_tables(database);
      // Now, since no process runs them here.
      database.execute(
          "UPDATE runs SET status = 'interrupted', reason = 'rescued from a damaged file before it had ended' "
          "WHERE status IN ('queued', 'running')");
      whole.commit();
    }
    report_.lost_transactions = file_.log().lost_transactions;
    report_.stale_pages = std::ssize(file_.log().stale_pages);
    report_.unreadable_bytes = file_.unreadable_bytes();
    if (report_.stale_pages > 0) losses_.gaps.push_back({});
    return std::move(report_);
  }

  const StepLosses& losses() const { return losses_; }

 private:
  std::size_t version_of_file() const {
    const auto newest = static_cast<std::int64_t>(migrations().size());
    if (file_.user_version() > newest)
      throw StorageError(
          fmt::format("{} was written by a newer version of Stepladder (its format is {}, this version knows up to {})",
                      name_.string(), file_.user_version(), newest));
    if (file_.user_version() > 0) return static_cast<std::size_t>(file_.user_version());
    const std::size_t version = version_by_schema(objects_);
    if (version == 0) throw StorageError(name_.string() + " holds no table of Stepladder that could be rescued");
    return version;
  }

  void note_strangers(Database& expected) {
    std::map<std::string, const SchemaObject*> ours;
    const std::vector<SchemaObject> expected_objects = schema_objects(expected);
    for (const SchemaObject& object : expected_objects) ours[object.name] = &object;
    for (const auto& [name, found] : objects_) {
      const auto own = ours.find(name);
      const bool differs = own == ours.end() ? !name.starts_with("sqlite_") && found.kind != "index"
                                             : own->second->text != found.definition;
      if (differs)
        report_.notes.push_back("the " + found.kind + " " + name.substr(0, 60) + " isn't as Stepladder creates it" +
                                (own == ours.end() ? ", so it is left out" : ""));
    }
  }

  void copy_tables(Database& database) {
    TreeReader reader(file_);
    reader.read_tree(1, &schema_shape(), {.row = [](const RawRow&) {}, .damaged_row = [] {}, .damaged_page = [] {}});
    RowCopier copier(database);
    std::vector<const TableShape*> damaged;
    std::vector<RescuedTable> tables(shapes_.size());
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      const TableShape& shape = shapes_[i];
      RescuedTable& table = tables[i];
      table.name = shape.name;
      bool is_behind_gap = false;
      last_step_ = std::nullopt;
      const auto found = objects_.find(shape.name);
      const TreeReader::Uses uses{.row = [&](const RawRow& row) { use_row(copier, shape, row, table, is_behind_gap); },
                                  .damaged_row = [&] { ++table.damaged_rows, open_gap(shape, is_behind_gap); },
                                  .damaged_page = [&] { ++table.damaged_pages, open_gap(shape, is_behind_gap); }};
      if (found == objects_.end() || found->second.root == 0)
        uses.damaged_page();
      else
        reader.read_tree(found->second.root, &shape, uses);
      if (table.is_damaged()) damaged.push_back(&shape);
    }
    // Remains of other trees aren't lost.
    const TreeReader::Uses none{.row = [](const RawRow&) {}, .damaged_row = [] {}, .damaged_page = [] {}};
    for (const auto& [name, object] : objects_)
      if (object.root != 0) reader.read_tree(object.root, nullptr, none);
    reader.read_lost_pages(damaged, [&](const TableShape& shape, const RawRow& row) {
      bool inside = false;
      use_row(copier, shape, row, tables[static_cast<std::size_t>(&shape - shapes_.data())], inside);
    });
    for (RescuedTable& table : tables)
      if (!is_derived(table.name)) report_.tables.push_back(std::move(table));
  }

  void use_row(RowCopier& copier, const TableShape& shape, const RawRow& row, RescuedTable& table,
               bool& is_behind_gap) {
    if (is_stopped_ && is_stopped_()) throw StorageError("the rescue was stopped");
    if (shape.name == "summaries") note_summary(shape, row);
    if (is_derived(shape.name)) return;
    if (const std::optional<RunId> run = run_of_row(shape, row); run && (*run < 1 || *run > highest_run)) {
      ++table.damaged_rows;
      return open_gap(shape, is_behind_gap);
    }
    if (holds_steps(shape)) {
      last_step_ = StepKey{row.values[0].integer, row.values[1].integer};
      if (is_behind_gap) losses_.gaps.back().after = last_step_;
      is_behind_gap = false;
    }
    if (row.is_doubtful || has_damaged_settings(shape, row)) ++table.damaged_rows;  // most of it is worth keeping
    if (copier.copy(shape, row))
      ++table.rows;
    else
      open_gap(shape, is_behind_gap), ++table.damaged_rows;  // a page that overwrites another has rows twice
  }

  static std::optional<RunId> run_of_row(const TableShape& shape, const RawRow& row) {
    if (shape.name == "runs") return row.rowid;
    const std::size_t column = shape.index_of("run_id");
    if (column >= row.values.size()) return std::nullopt;
    return shape.columns[column].is_rowid ? row.rowid : row.values[column].integer;
  }

  void note_summary(const TableShape& shape, const RawRow& row) {
    losses_.steps_by_summary[row.rowid] = row.values[shape.index_of("steps")].integer;
  }

  void open_gap(const TableShape& shape, bool& is_behind_gap) {
    if (!holds_steps(shape)) return;
    if (!is_behind_gap) losses_.gaps.push_back({.before = last_step_});
    is_behind_gap = true;
  }

  fs::path name_;
  PageFile file_;
  std::function<bool()> is_stopped_;
  std::map<std::string, FoundObject> objects_;
  std::vector<TableShape> shapes_;
  std::optional<StepKey> last_step_;
  StepLosses losses_;
  RescueReport report_;
};

}  // namespace

RescueReport rescue(const fs::path& damaged, const fs::path& out, const std::function<bool()>& is_stopped) {
  std::error_code unknown;  // opening it will say why
  if (!fs::exists(damaged, unknown) && !unknown) throw StorageError(damaged.string() + " does not exist");
  refuse_an_open_file(damaged);
  FileToBe file(out);
  Rescue work(damaged, is_stopped);
  RescueReport report = work.copy_to(file.file());
  {
    Database database(file.file(), Database::Mode::read_write);
    prepare_schema(database, migrations(), BackUp::never);
    repair_rescued_runs(database, work.losses(), report);
  }
  file.finish();
  return report;
}

bool RescueReport::is_whole() const {
  return runs.empty() && stale_pages == 0 && std::ranges::none_of(tables, &RescuedTable::is_damaged);
}

}  // namespace stepladder
