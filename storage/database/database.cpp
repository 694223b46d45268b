// SQLite behind three classes, and the defences against hostile files: limits of SQLite, an untrusted schema, a budget
// of instructions for each statement that grows with the file. Statements are cached by their SQL. Error codes become
// sentences in `fail`.
#include "storage/database/database.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>

#include "storage/database/not_stored_now.h"
#include "storage/own_folder.h"
#include "storage/records.h"
#include "storage/regular_file.h"
#include "storage/wording.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t longest_path = 504;  // SQLite's 512 bytes, less the ending of a journal's name

// A statement may run this many of SQLite's instructions, in thousands of thousands, and as many more as the file has
// bytes times a hundred: a row of 20 bytes takes about 20 instructions to read.
constexpr int instructions_a_call = 1'000'000;
constexpr std::int64_t calls_at_least = 20;
constexpr std::int64_t bytes_a_call = instructions_a_call / 100;

struct Limit {
  int id;
  int most;
};
constexpr Limit limits[] = {
    {SQLITE_LIMIT_LENGTH, 64 << 20},
    {SQLITE_LIMIT_SQL_LENGTH, 256 << 10},
    {SQLITE_LIMIT_EXPR_DEPTH, 100},
    {SQLITE_LIMIT_COLUMN, 200},
    {SQLITE_LIMIT_COMPOUND_SELECT, 20},
    {SQLITE_LIMIT_TRIGGER_DEPTH, 10},
    {SQLITE_LIMIT_ATTACHED, 1},  // VACUUM attaches one
    {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000},
};

[[noreturn]] void throw_no_space(const fs::path& file) {
  throw NotStoredNow("no space is left on the volume of " + file.string());
}

[[noreturn]] void throw_damaged(const fs::path& file, Database::Mode mode, const std::string& sentence) {
  if (mode == Database::Mode::foreign) throw StorageError(sentence);  // another program's: not ours to rescue
  throw DamagedFile(file, sentence);
}

std::string reason_of(int error_number) {
  return std::generic_category().message(error_number);
}

fs::path folder_of(const fs::path& file) {
  return fs::absolute(file).parent_path();
}

bool volume_is_full(const fs::path& file) {
  std::error_code error;
  const fs::space_info space = fs::space(folder_of(file), error);
  return !error && space.available < 4096;
}

// The write-ahead log or journal; null if there is none.
sqlite3_file* open_log_of(sqlite3* connection) {
  sqlite3_file* log = nullptr;
  sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  return log && log->pMethods ? log : nullptr;
}

// The errno of the last failed read or write; 0 if it isn't known. sqlite3_system_errno is set only by opening;
// later failures are kept by the file in which they happened: the database or its log.
int error_number_of(sqlite3* connection) {
  if (const int at_opening = sqlite3_system_errno(connection)) return at_opening;
  int number = 0;
  sqlite3_file_control(connection, "main", SQLITE_FCNTL_LAST_ERRNO, &number);
  if (number) return number;
  sqlite3_file* log = open_log_of(connection);
  const auto control = log ? log->pMethods->xFileControl : nullptr;  // a journal in memory has none
  if (control) control(log, SQLITE_FCNTL_LAST_ERRNO, &number);
  return number;
}

// Finds the causes that SQLite reports only as "unable to open database file".
void refuse_what_is_no_file(const fs::path& file, Database::Mode mode) {
  if (file.empty()) throw StorageError("the database's file name is empty");
  std::error_code error;
  if (const std::size_t bytes = fs::absolute(file, error).string().size(); bytes > longest_path)
    throw StorageError(
        fmt::format("the database's path has {} bytes, of which SQLite takes at most {}; choose a shorter one: {}",
                    bytes, longest_path, file.string()));
  for (const char* ending : {"-wal", "-shm", "-journal"}) {  // SQLite would wait for a named pipe's writer
    const fs::path beside = file.string() + ending;
    if (const auto status = fs::status(beside, error); fs::exists(status) && !fs::is_regular_file(status))
      throw StorageError(beside.string() + " is not a regular file; move it away");
  }
  const fs::file_status status = fs::status(file, error);
  if (fs::is_directory(status)) throw StorageError(file.string() + " is a folder, not a database file");
  if (fs::exists(status)) {
    if (!fs::is_regular_file(status)) throw StorageError(file.string() + " is not a regular file");
    return;
  }
  if (status.type() != fs::file_type::not_found)
    throw StorageError(file.string() + " could not be opened: " + error.message());
  if (mode != Database::Mode::read_write) throw StorageError(file.string() + " does not exist");
  if (!make_private_folders(folder_of(file)))
    throw StorageError("the folder of " + file.string() + " could not be created: " + reason_of(errno));
  // Command lines and environments may hold secrets. SQLite gives the files beside it the same permissions. If this
  // fails, SQLite fails too and reports why.
  if (const int created = ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600); created >= 0)
    ::close(created);
}

// The size of the file and of the log that programs have left beside it.
std::int64_t bytes_of(const fs::path& file) {
  std::int64_t all = 0;
  for (const char* ending : {"", "-wal"}) {
    std::error_code error;
    const auto bytes = fs::file_size(file.string() + ending, error);
    if (!error) all += static_cast<std::int64_t>(bytes);
  }
  return all;
}

// A file name as a "file:" address, the only form in which SQLite accepts "immutable".
std::string immutable_address(const fs::path& file) {
  std::string address = "file:";
  for (const char c : fs::absolute(file).string()) {
    if (c == '%' || c == '?' || c == '#') {
      static constexpr char digits[] = "0123456789abcdef";
      address += '%';
      address += digits[static_cast<unsigned char>(c) >> 4];
      address += digits[static_cast<unsigned char>(c) & 15];
    } else {
      address += c;
    }
  }
  return address + "?immutable=1";
}

bool can_write_folder_of(const fs::path& file) {
  return faccessat(AT_FDCWD, folder_of(file).c_str(), W_OK, AT_EACCESS) == 0;
}

bool has_log_beside(const fs::path& file) {
  std::error_code error;
  const auto bytes = fs::file_size(file.string() + "-wal", error);
  return !error && bytes > 0;
}

}  // namespace

Database::Database(InMemory) : mode_(Mode::read_write) {
  connect(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  execute("PRAGMA foreign_keys = ON");
}

Database::Database(const fs::path& file, Mode mode) : file_(file), mode_(mode) {
  refuse_what_is_no_file(file, mode);
  if (mode != Mode::foreign)
    if (const std::string why = strange_neighbour_of(file); !why.empty()) throw StorageError(why);
  // Absolute, since SQLite gives names such as ":memory:" a meaning of their own.
  const std::string address = fs::absolute(file).string();
  try {
    if (mode == Mode::read_write) {
      connect(address, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
      // SQLite silently opens a file that it may not write for reading only.
      if (sqlite3_db_readonly(connection_, "main") == 1)
        throw StorageError(file.string() + " is read-only and cannot be written");
      // Only an empty file can be set to give back the space of deleted rows, and to have small pages: a commit of a
      // second's steps writes whole pages.
      if (integer("PRAGMA page_count") == 0) execute("PRAGMA page_size = 1024; PRAGMA auto_vacuum = INCREMENTAL");
      execute("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL");
    } else if (mode == Mode::foreign) {
      connect(immutable_address(file), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
      integer("PRAGMA schema_version");
    } else {
      connect(address, SQLITE_OPEN_READONLY);
      try {
        integer("PRAGMA schema_version");
      } catch (const StorageError&) {
        // Reading a write-ahead log needs an index file beside it, which cannot be created in a read-only folder.
        // Nobody else can write there either, so the file alone is complete unless there is a log.
        if (can_write_folder_of(file)) throw;
        if (has_log_beside(file))
          throw StorageError(file.string() + " cannot be read in a folder that is read-only, since " + file.string() +
                             "-wal holds changes that are not yet in it");
        disconnect();
        connect(immutable_address(file), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
        integer("PRAGMA schema_version");
      }
    }
  } catch (...) {
    disconnect();
    throw;
  }
}

Database::~Database() {
  disconnect();
}

void Database::disconnect() {
  for (auto& [sql, kept] : kept_) sqlite3_finalize(kept.statement);
  kept_.clear();
  sqlite3_close(connection_);
  connection_ = nullptr;
}

void Database::connect(const std::string& address, int flags) {
  const int code = sqlite3_open_v2(address.c_str(), &connection_, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  if (!connection_) throw std::bad_alloc();
  sqlite3_extended_result_codes(connection_, 1);
  if (code != SQLITE_OK) fail(sqlite3_extended_errcode(connection_));
  sqlite3_busy_handler(connection_, wait_for_lock, &wait_);
  harden();
}

int Database::wait_for_lock(void* state, int times_before) {
  auto& wait = *static_cast<Wait*>(state);
  const auto now = std::chrono::steady_clock::now();
  if (times_before == 0) wait.begun = now;
  if (now - wait.begun >= wait.patience) return 0;
  std::this_thread::sleep_for(std::chrono::milliseconds(times_before < 50 ? 1 : 2));
  return 1;
}

// Defends against what a file may hold: expressions in its schema, gigabytes in one value, and pages that point at the
// same pages again and again, which would be read forever.
void Database::harden() {
  for (const Limit& limit : limits) sqlite3_limit(connection_, limit.id, limit.most);
  sqlite3_db_config(connection_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(connection_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  execute("PRAGMA cell_size_check = ON");
  if (file_.empty()) return;
  known_bytes_ = bytes_of(file_);
  calls_left_ = calls_at_least + known_bytes_ / bytes_a_call;
  const auto interrupt = [](void* database) { return static_cast<Database*>(database)->within_budget() ? 0 : 1; };
  sqlite3_progress_handler(connection_, instructions_a_call, interrupt, this);
}

// Statements of our own file are each given their time; those of a foreign file share it.
void Database::begin_statement() {
  if (open_statements_ == 0 && mode_ != Mode::foreign) calls_left_ = calls_at_least + known_bytes_ / bytes_a_call;
}

bool Database::within_budget() {
  if (--calls_left_ >= 0) return true;
  if (mode_ == Mode::foreign) return false;
  // The file may have grown since.
  const std::int64_t bytes = bytes_of(file_);
  calls_left_ = (bytes - known_bytes_) / bytes_a_call;
  known_bytes_ = std::max(bytes, known_bytes_);
  return calls_left_ > 0;
}

void Database::execute(const std::string& sql) {
  begin_statement();
  const int code = sqlite3_exec(connection_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

void Database::use_write_ahead_log() {
  if (text("PRAGMA journal_mode") == "wal") return;
  // If two processes do this to a new file at once, SQLite answers "busy" without calling its busy handler.
  const auto give_up = std::chrono::steady_clock::now() + wait_.patience;
  while (true) {
    const int code = sqlite3_exec(connection_, "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr);
    if (code == SQLITE_OK) return;
    if ((code & 0xff) != SQLITE_BUSY || std::chrono::steady_clock::now() > give_up) fail(code);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::int64_t Database::last_insert_id() const {
  return sqlite3_last_insert_rowid(connection_);
}

std::int64_t Database::changes() const {
  return sqlite3_changes64(connection_);
}

bool Database::in_transaction() const {
  return sqlite3_get_autocommit(connection_) == 0;
}

void Database::fail(int code) const {
  const std::string name = file_.string();
  const std::string message = sqlite3_errmsg(connection_);
  const int error_number = error_number_of(connection_);
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      throw_damaged(file_, mode_, name + " is not a SQLite database");
    case SQLITE_CORRUPT:
      throw_damaged(file_, mode_, name + " is damaged: " + message);
    case SQLITE_READONLY:
      throw StorageError(name + " is read-only and cannot be written");
    case SQLITE_FULL:
      throw_no_space(file_);
    case SQLITE_BUSY:
      if (wait_.patience < std::chrono::seconds(1)) throw FileIsLocked(name + " is locked by another process");
      throw FileIsLocked(fmt::format("{} was locked by another process for {} s", name, wait_.patience.count() / 1000));
    case SQLITE_IOERR:
      if (error_number == ENOSPC || error_number == EDQUOT || volume_is_full(file_)) throw_no_space(file_);
      throw NotStoredNow(name + " could not be read or written: " + (error_number ? reason_of(error_number) : message));
    case SQLITE_CANTOPEN:
      if (error_number == ENOSPC || error_number == EDQUOT || volume_is_full(file_)) throw_no_space(file_);
      if (mode_ == Mode::read_write && !can_write_folder_of(file_))
        throw StorageError(name + " cannot be written: its folder is read-only (" + reason_of(errno) + ")");
      throw StorageError(name + " could not be opened: " + (error_number ? reason_of(error_number) : message));
    case SQLITE_INTERRUPT:
      throw_damaged(file_, mode_, name + " is damaged: reading it would never end");
    case SQLITE_CONSTRAINT:
      throw StorageError(name + " cannot hold this: " + message);
    default:
      throw StorageError(name + " could not be used: " + message);
  }
}

sqlite3_stmt* Database::compile(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(connection_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                      &statement, nullptr);
  if (code != SQLITE_OK) fail(code);
  return statement;
}

Statement::Statement(Database& database, std::string_view sql) : database_(database) {
  database_.begin_statement();
  auto found = database.kept_.find(sql);
  if (found == database.kept_.end())
    found = database.kept_.emplace(sql, Database::CachedStatement{.statement = database.compile(sql)}).first;
  if (found->second.in_use) {
    statement_ = database.compile(sql);
    kept_ = nullptr;
  } else {
    kept_ = &found->second;
    kept_->in_use = true;
    statement_ = kept_->statement;
  }
  ++database_.open_statements_;
}

Statement::~Statement() {
  --database_.open_statements_;
  if (!kept_) {
    sqlite3_finalize(statement_);
    return;
  }
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  kept_->in_use = false;
}

void Statement::check(int code) const {
  if (code != SQLITE_OK) database_.fail(code);
}

Statement& Statement::bind(std::int64_t value) {
  check(sqlite3_bind_int64(statement_, ++bound_, value));
  return *this;
}

Statement& Statement::bind(double value) {
  check(sqlite3_bind_double(statement_, ++bound_, value));
  return *this;
}

Statement& Statement::bind(std::string_view value) {
  // An empty view may hold a null pointer, which SQLite would take for NULL.
  const char* data = value.empty() ? "" : value.data();
  check(sqlite3_bind_text64(statement_, ++bound_, data, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind(Blob blob) {
  const char* data = blob.bytes.empty() ? "" : blob.bytes.data();
  check(sqlite3_bind_blob64(statement_, ++bound_, data, blob.bytes.size(), SQLITE_TRANSIENT));
  return *this;
}

Statement& Statement::bind(std::nullopt_t) {
  check(sqlite3_bind_null(statement_, ++bound_));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) database_.fail(code);
  return false;
}

void Statement::run() {
  while (step()) {
  }
  sqlite3_reset(statement_);
  bound_ = 0;
  --database_.open_statements_;
  database_.begin_statement();
  ++database_.open_statements_;
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

double Statement::real(int column) const {
  return is_null(column) ? missing : sqlite3_column_double(statement_, column);
}

std::string Statement::text(int column) const {
  const unsigned char* data = sqlite3_column_text(statement_, column);
  if (!data) return {};
  return {reinterpret_cast<const char*>(data), static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

std::string_view Statement::blob(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  if (!data) return {};
  return {static_cast<const char*>(data), static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

Transaction::Transaction(Database& database, Kind kind) : database_(database), nested_(database.in_transaction()) {
  // IMMEDIATE takes the write lock now: a transaction that starts as a reader cannot wait for it later.
  database_.execute(nested_ ? "SAVEPOINT nested" : kind == Kind::read ? "BEGIN" : "BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (!open_) return;
  // After a full disk SQLite has often rolled back already, and another rollback would be an error.
  try {
    if (database_.in_transaction()) database_.execute(nested_ ? "ROLLBACK TO nested; RELEASE nested" : "ROLLBACK");
  } catch (const StorageError&) {
  }
}

void Transaction::commit() {
  database_.execute(nested_ ? "RELEASE nested" : "COMMIT");
  open_ = false;
}

namespace {

using namespace std::chrono_literals;
using SliceClock = std::chrono::steady_clock;

constexpr auto slice_work = 30ms;  // the commit adds to it, which waits for the disk
constexpr auto slice_gap = 4ms;    // waiting connections ask every 1 to 2 ms

bool write_slice(Database& database, const std::function<bool()>& piece) {
  Transaction transaction(database);
  const auto until = SliceClock::now() + slice_work;
  bool more = true;
  while (more && SliceClock::now() < until) more = piece();
  transaction.commit();
  return more;
}

}  // namespace

void in_slices(Database& database, const std::function<bool()>& piece) {
  if (database.in_transaction() || database.file().empty()) {
    Transaction transaction(database);
    while (piece()) {
    }
    return transaction.commit();
  }
  for (bool more = true; more;) {
    const auto begun = SliceClock::now();
    more = write_slice(database, piece);
    // Pauses also after the last one, since the caller may continue with more of the same.
    if (SliceClock::now() - begun > slice_gap) std::this_thread::sleep_for(slice_gap);
  }
}

}  // namespace stepladder
