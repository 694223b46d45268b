#include "storage/database/upkeep.h"

#include "storage/database/database.h"
#include "storage/database/rescue/lost_steps.h"

namespace stepladder {
namespace fs = std::filesystem;

std::string Upkeep::integrity_check() {
  Statement rows(database_, "PRAGMA integrity_check");
  std::string found;
  while (rows.step()) found += (found.empty() ? "" : "; ") + rows.text(0);
  std::string lost;
  try {
    lost = lost_steps(database_);
  } catch (const StorageError&) {  // damaged, as SQLite has found
  }
  if (lost.empty()) return found;
  return found == "ok" ? lost : found + "; " + lost;
}

FileSpace Upkeep::space() {
  std::error_code unknown;
  const auto bytes = fs::file_size(database_.file(), unknown);
  const std::int64_t page = database_.integer("PRAGMA page_size");
  return {.file_bytes = unknown ? 0 : static_cast<std::int64_t>(bytes),
          .content_bytes = page * database_.integer("PRAGMA page_count"),
          .free_bytes = page * database_.integer("PRAGMA freelist_count")};
}

void Upkeep::compact() {
  database_.execute("PRAGMA locking_mode = EXCLUSIVE");
  try {
    // Succeeds only if no other connection has the file open, and keeps others out from here on.
    database_.execute("PRAGMA journal_mode = DELETE");
  } catch (const StorageError& error) {
    database_.execute("PRAGMA locking_mode = NORMAL");
    throw StorageError(database_.file().string() + " can be compacted only while no other program has it open (" +
                       error.what() + ")");
  }
  std::string failure;
  try {
    database_.execute("PRAGMA auto_vacuum = INCREMENTAL; VACUUM");
  } catch (const StorageError& error) {
    failure = error.what();
  }
  database_.execute("PRAGMA locking_mode = NORMAL");
  database_.use_write_ahead_log();
  if (!failure.empty()) throw StorageError("nothing was changed: " + failure);
}

FileContents Upkeep::back_up(const fs::path& out) {
  stepladder::back_up(database_, out);
  return contents_of(out);
}

SharedCopy Upkeep::share(const fs::path& out, const ShareOptions& options) {
  return stepladder::share(database_, out, options);
}

void Upkeep::set_patience(std::chrono::milliseconds patience) {
  database_.set_patience(patience);
}

}  // namespace stepladder
