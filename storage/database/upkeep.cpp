#include "storage/database/upkeep.h"

#include "storage/database/database.h"
#include "storage/wording.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

// Runs that had more steps than the file still has, as parts of a sentence: "run 3 has 4,963 of the 5,000 steps that
// its summary counts". A summary is removed in the same transaction that changes a run's steps, so one that counts more
// proves a loss. Reads every step.
std::string lost_steps(Database& database) {
  Statement rows(database,
                 "SELECT id, (SELECT count(*) FROM steps WHERE run_id = id) AS stored, summaries.steps "
                 "FROM summaries JOIN runs ON id = run_id WHERE hidden = 0 AND stored < summaries.steps ORDER BY id");
  std::string found;
  while (rows.step()) {
    found += fmt::format("{}run {} has {} of the {} steps that its summary counts", found.empty() ? "" : "; ",
                         rows.integer(0), grouped(rows.integer(1)), grouped(rows.integer(2)));
  }
  return found;
}

}  // namespace

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

bool Upkeep::fold_log() {
  Statement pages(database_, "PRAGMA wal_checkpoint(PASSIVE)");  // busy, pages of the log, those in the file
  return pages.step() && pages.integer(0) == 0 && pages.integer(1) == pages.integer(2);
}

std::int64_t Upkeep::version() {
  return database_.integer("PRAGMA data_version");
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
