// Looks after the project's file: its soundness, size and copies. A part of RunStore, which has its threads, locks and
// errors.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "storage/database/backup.h"
#include "storage/database/share.h"

namespace stepladder {

class Database;

struct FileSpace {
  std::int64_t file_bytes = 0;     // of the database's file alone
  std::int64_t content_bytes = 0;  // what it will have when the log is in it
  std::int64_t free_bytes = 0;     // of these, unused until new rows need them
};

class Upkeep {
 public:
  explicit Upkeep(Database& database) : database_(database) {}

  std::string integrity_check();  // "ok", or SQLite's findings and the runs that have lost steps

  // Writes a complete copy of the file's present state to `out`, which must not exist, while others go on writing. It
  // is on the disk when this returns. Returns what the copy holds.
  FileContents back_up(const std::filesystem::path& out);

  // A copy for others, without what share.h names; else as back_up.
  SharedCopy share(const std::filesystem::path& out, const ShareOptions& options);

  FileSpace space();

  // Writes the whole file anew without unused space; from then on deletions make it smaller. Throws StorageError if
  // another connection has it open. Needs as much space again meanwhile.
  void compact();

  // Copies what committed transactions have in the log (`FILE-wal`) into the file, so that the file alone is complete.
  // Waits for nobody. Returns whether it is; it isn't while somebody reads an older state.
  bool fold_log();

  // A number that another connection's commit changes.
  std::int64_t version();

  void set_patience(std::chrono::milliseconds patience);  // how long a verb waits for other processes' locks; 5 s

 private:
  Database& database_;
};

}  // namespace stepladder
