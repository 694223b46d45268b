// The SQLite file of another program: read as it lies there, never written, with nothing left beside it.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "storage/database/database.h"

namespace stepladder {

// Whether the first bytes of a file are those of a SQLite database.
bool is_sqlite(std::string_view head);

// Where changes wait in a log beside the file (-wal, -journal), it is a private copy of both that is read, since SQLite
// would work the log off or make an index for it. The copy goes with this object.
class ForeignDatabase {
 public:
  // Throws ImportError and StorageError.
  explicit ForeignDatabase(const std::filesystem::path& file);

  Database& get() { return *database_; }

  // True where each of these is a plain table: a view or a computed column could run for ever or make gigabytes.
  bool has_tables(std::initializer_list<std::string_view> names);
  bool has_column(std::string_view table, std::string_view column);

 private:
  struct Copy {
    ~Copy();
    std::filesystem::path folder;
  };
  Copy copy_;  // goes after the connection
  std::unique_ptr<Database> database_;
};

}  // namespace stepladder
