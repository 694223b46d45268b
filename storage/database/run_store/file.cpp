// The file itself: its settings, soundness, space and copies.
#include "storage/database/rescue/lost_steps.h"
#include "storage/database/run_store/run_store_impl.h"

namespace stepladder {
namespace fs = std::filesystem;

std::optional<std::string> RunStore::setting(const std::string& key) {
  Statement rows(impl_->database, "SELECT value FROM settings WHERE key = ?");
  rows.bind(key);
  if (!rows.step()) return std::nullopt;
  return rows.text(0);
}

void RunStore::set_setting(const std::string& key, const std::string& value) {
  Statement(impl_->database, "INSERT OR REPLACE INTO settings (key, value) VALUES (?, ?)").bind(key).bind(value).run();
}

std::string RunStore::integrity_check() {
  Statement rows(impl_->database, "PRAGMA integrity_check");
  std::string found;
  while (rows.step()) found += (found.empty() ? "" : "; ") + rows.text(0);
  std::string lost;
  try {
    lost = lost_steps(impl_->database);
  } catch (const StorageError&) {  // damaged, as SQLite has found
  }
  if (lost.empty()) return found;
  return found == "ok" ? lost : found + "; " + lost;
}

RunStore::Space RunStore::space() {
  Database& database = impl_->database;
  std::error_code unknown;
  const auto bytes = fs::file_size(file(), unknown);
  const std::int64_t page = database.integer("PRAGMA page_size");
  return {.file_bytes = unknown ? 0 : static_cast<std::int64_t>(bytes),
          .content_bytes = page * database.integer("PRAGMA page_count"),
          .free_bytes = page * database.integer("PRAGMA freelist_count")};
}

void RunStore::compact() {
  Database& database = impl_->database;
  database.execute("PRAGMA locking_mode = EXCLUSIVE");
  try {
    // Succeeds only if no other connection has the file open, and keeps others out from here on.
    database.execute("PRAGMA journal_mode = DELETE");
  } catch (const StorageError& error) {
    database.execute("PRAGMA locking_mode = NORMAL");
    throw StorageError(file().string() + " can be compacted only while no other program has it open (" + error.what() +
                       ")");
  }
  std::string failure;
  try {
    database.execute("PRAGMA auto_vacuum = INCREMENTAL; VACUUM");
  } catch (const StorageError& error) {
    failure = error.what();
  }
  database.execute("PRAGMA locking_mode = NORMAL");
  database.use_write_ahead_log();
  if (!failure.empty()) throw StorageError("nothing was changed: " + failure);
}

FileContents RunStore::back_up(const fs::path& out) {
  stepladder::back_up(impl_->database, out);
  return contents_of(out);
}

SharedCopy RunStore::share(const fs::path& out, const ShareOptions& options) {
  return stepladder::share(impl_->database, out, options);
}

const fs::path& RunStore::file() const {
  return impl_->database.file();
}

void RunStore::set_patience(std::chrono::milliseconds patience) {
  impl_->database.set_patience(patience);
}

bool RunStore::read_only() const {
  return impl_->database.read_only();
}

}  // namespace stepladder
