// Opens another program's SQLite file for reading without leaving a trace: in place if it has no log, beside the writer
// if that keeps the index, else as a private copy that is deleted with the object. `check` catches a writer that
// appeared meanwhile.
#include "storage/importers/trackers/foreign_database.h"

#include <stdlib.h>

#include <chrono>
#include <system_error>

#include "storage/regular_file.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr const char* logs[] = {"-wal", "-journal"};

bool has_log(const fs::path& file) {
  for (const char* ending : logs) {
    std::error_code error;
    const auto bytes = fs::file_size(file.string() + ending, error);
    if (!error && bytes > 0) return true;
  }
  return false;
}

bool uses_write_ahead_log(const fs::path& file) {
  constexpr std::streamoff at = 18;  // the version that may write it: 1 or, with a log, 2
  RegularFile stream(file);
  stream.seekg(at);
  return stream.get() == 2;
}

fs::path make_private_folder() {
  std::string name = (fs::temp_directory_path() / "stepladder-import-XXXXXX").string();
  if (!mkdtemp(name.data())) throw ImportError("could not be copied: no temporary folder could be created");
  return name;
}

void copy_with_logs(const fs::path& file, const fs::path& target) {
  // A running program may move changes from the log into the file: copy until neither has changed.
  for (const std::string& each : {file.string(), file.string() + logs[0], file.string() + logs[1]})
    if (is_hollow(each)) throw ImportError("could not be copied: " + each + " is nearly all holes");
  for (int attempt = 0; attempt < 5; ++attempt) {
    std::error_code error;
    const auto before = fs::last_write_time(file, error);
    fs::copy_file(file, target, fs::copy_options::overwrite_existing, error);
    if (error) throw ImportError("could not be copied: " + error.message());
    for (const char* ending : logs) {
      fs::remove(target.string() + ending, error);
      if (fs::exists(file.string() + ending, error))
        fs::copy_file(file.string() + ending, target.string() + ending, fs::copy_options::overwrite_existing, error);
    }
    if (fs::last_write_time(file, error) == before) return;
  }
  throw ImportError("is written too often to be copied; try again when its program is idle");
}

}  // namespace

bool is_sqlite(std::string_view head) {
  return head.starts_with(std::string_view("SQLite format 3\0", 16));
}

ForeignDatabase::Copy::~Copy() {
  std::error_code error;
  if (!folder.empty()) fs::remove_all(folder, error);
}

ForeignDatabase::ForeignDatabase(const fs::path& file, Writer writer) {
  if (const std::string why = strange_neighbour_of(file); !why.empty()) throw ImportError("can't be opened: " + why);
  if (writer == Writer::at_work)
    open_beside_writer(file);
  else if (has_log(file))
    open_copy(file);
  else
    database_ = std::make_unique<Database>(file, Database::Mode::foreign);
}

// Reading a write-ahead log needs an index beside it. The program that writes keeps one; without one it would be
// created here, so the log is read from a copy.
void ForeignDatabase::open_beside_writer(const fs::path& file) {
  constexpr std::chrono::milliseconds patience(500);
  std::error_code error;
  const bool has_index = fs::exists(file.string() + "-shm", error);
  if (!uses_write_ahead_log(file) || (has_index && fs::exists(file.string() + "-wal", error))) {
    database_ = std::make_unique<Database>(file, Database::Mode::read_only);
    database_->set_patience(patience);
  } else if (has_log(file)) {
    open_copy(file);
  } else {
    without_log_ = file;
    written_ = fs::last_write_time(file, error);
    database_ = std::make_unique<Database>(file, Database::Mode::foreign);
  }
}

void ForeignDatabase::check() const {
  std::error_code error;
  if (without_log_.empty()) return;
  if (!has_log(without_log_) && fs::last_write_time(without_log_, error) == written_) return;
  throw StorageError(without_log_.string() + " was written while it was read");
}

void ForeignDatabase::open_copy(const fs::path& file) {
  copy_.folder = make_private_folder();
  const fs::path copy = copy_.folder / file.filename();
  copy_with_logs(file, copy);
  Database(copy, Database::Mode::read_write).integer("PRAGMA wal_checkpoint(TRUNCATE)");
  database_ = std::make_unique<Database>(copy, Database::Mode::foreign);
}

bool ForeignDatabase::has_tables(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    Statement table(*database_,
                    "SELECT count(*) FROM sqlite_schema AS entry WHERE name = ? AND type = 'table' AND rootpage > 0 "
                    "AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(entry.name) WHERE hidden <> 0)",
                    name);
    if (!table.step() || table.integer(0) != 1) return false;
  }
  return true;
}

bool ForeignDatabase::has_column(std::string_view table, std::string_view column) {
  return database_->has("SELECT 1 FROM pragma_table_info(?) WHERE name = ?", table, column);
}

std::string ForeignDatabase::indexed(const std::string& table, const std::string& column, const std::string& columns) {
  const std::int64_t indices = database_->integer(
      "SELECT count(*) FROM pragma_index_list(?) AS list, pragma_index_info(list.name) AS part "
      "WHERE list.partial = 0 AND part.seqno = 0 AND part.name = ?",
      table, column);
  if (indices > 0) return table;
  const std::string copy = table + "_by_" + column;
  database_->execute("CREATE TEMP TABLE " + copy + " AS SELECT " + column + ", " + columns + " FROM main." + table +
                     "; CREATE INDEX temp." + copy + "_index ON " + copy + "(" + column + ")");
  return "temp." + copy;
}

bool is_sqlite_file(const fs::path& file) {
  return !file.empty() && is_sqlite(RegularFile(file).read_at(0, 64));
}

std::unique_ptr<ImportReader> database_reader(const fs::path& file, std::function<void()> read) {
  class Reader : public ImportReader {
   public:
    explicit Reader(std::function<void()> read) : read_(std::move(read)) {}
    void take(std::string_view) override {}
    void finish() override { read_(); }

   private:
    const std::function<void()> read_;
  };
  if (file.empty()) throw ImportError("is a database, which can only be read from a file");
  return std::make_unique<Reader>(std::move(read));
}

}  // namespace stepladder
