// Reads the SQLite file of another program. Never writes it, and leaves no file beside it.
#pragma once

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "storage/database/database.h"
#include "storage/importers/importer.h"

namespace stepladder {

// Whether the first bytes of a file are those of a SQLite database.
bool is_sqlite(std::string_view head);

// Whether a file of another program is a SQLite database; false also without a path.
bool is_sqlite_file(const std::filesystem::path& file);

// A reader of a database, which ignores the bytes and calls `read` when the input ends. Throws ImportError without a
// path.
std::unique_ptr<ImportReader> database_reader(const std::filesystem::path& file, std::function<void()> read);

// If a log beside the file (-wal, -journal) holds changes, this reads a private copy of both, since SQLite would apply
// the log or write an index for it. The copy is deleted with this object.
class ForeignDatabase {
 public:
  // at_work: a program may be writing the file. Then a statement holds a read lock as the program's own readers do, and
  // what is read is one of its committed states.
  enum class Writer { at_rest, at_work };

  // Throws ImportError and StorageError.
  explicit ForeignDatabase(const std::filesystem::path& file, Writer writer = Writer::at_rest);

  // Throws StorageError if a program has begun to write since, so that what was read without its log may be torn. Call
  // after reading.
  void check() const;

  Database& get() { return *database_; }

  // Whether each of these is a plain table: a view or a computed column could run forever or produce gigabytes.
  bool has_tables(std::initializer_list<std::string_view> names);
  bool has_column(std::string_view table, std::string_view column);

  // The name of a table with these columns of `table`, in which an index finds the rows of one value of `column`: the
  // table itself, or a temporary copy if it has no such index. Without one, reading run by run would read the whole
  // table for each run.
  std::string indexed(const std::string& table, const std::string& column, const std::string& columns);

 private:
  void open_beside_writer(const std::filesystem::path& file);
  void open_copy(const std::filesystem::path& file);

  struct Copy {
    ~Copy();
    std::filesystem::path folder;
  };
  Copy copy_;  // destroyed after the connection
  std::unique_ptr<Database> database_;
  std::filesystem::path without_log_;  // the file, if it is read as one that nobody writes
  std::filesystem::file_time_type written_;
};

}  // namespace stepladder
