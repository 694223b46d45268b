// Three small RAII classes over SQLite. Inside storage/ only; nothing else sees sqlite3.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/errors.h"

struct sqlite3;
struct sqlite3_stmt;

namespace stepladder {

// One connection. One thread at a time. Opening checks only that the file is SQLite; schema.h checks that it is ours.
// No connection trusts its file: expressions in its schema may call only harmless functions, values and statements have
// a largest size, and a statement that visits far more than the file holds ends with StorageError.
class Database {
 public:
  enum class Mode { read_write, read_only, foreign };

  // foreign: another program's file. Locks, writes and creates nothing, ignores logs beside it, and all of its
  // statements together may visit the file's bytes only so often. read_write creates a missing file, which only its
  // owner may read, and its folder. Waits up to 5 s for other processes' locks (set_patience). A commit is on the disk
  // when it returns.
  Database(const std::filesystem::path& file, Mode mode);

  // A database in memory, gone with this connection; its file() is empty.
  struct InMemory {};
  explicit Database(InMemory);

  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void execute(const std::string& sql);  // any number of statements, no results
  // One statement with the values of its parameters: runs to its end, or gives its first row's first column (0, empty
  // or nullopt if there is no row, or no number), whether it has a row, or the first column of all rows.
  template <class... Values>
  void run(std::string_view sql, const Values&... values);
  // `into`: "INTO table" or "OR REPLACE INTO table"; a value for each column.
  template <class... Values>
  void insert(std::string_view into, std::string_view columns, const Values&... values);
  template <class... Values>
  std::int64_t integer(std::string_view sql, const Values&... values);
  template <class... Values>
  std::optional<std::int64_t> find(std::string_view sql, const Values&... values);
  template <class... Values>
  std::string text(std::string_view sql, const Values&... values);
  template <class... Values>
  std::optional<std::string> find_text(std::string_view sql, const Values&... values);
  template <class... Values>
  bool has(std::string_view sql, const Values&... values);
  template <class... Values>
  std::vector<std::int64_t> integers(std::string_view sql, const Values&... values);
  template <class... Values>
  std::vector<std::string> texts(std::string_view sql, const Values&... values);

  void use_write_ahead_log();
  std::int64_t last_insert_id() const;
  std::int64_t changes() const;  // rows that the last statement inserted, updated or deleted
  bool in_transaction() const;
  void set_patience(std::chrono::milliseconds patience) { wait_.patience = patience; }  // for other processes' locks
  bool read_only() const { return mode_ != Mode::read_write; }
  const std::filesystem::path& file() const { return file_; }

  [[noreturn]] void fail(int code) const;  // throws the StorageError for a result code of SQLite

 private:
  friend class Statement;
  void connect(const std::string& address, int flags);
  void disconnect();
  void harden();
  void begin_statement();
  bool within_budget();
  sqlite3_stmt* compile(std::string_view sql);

  struct CachedStatement {
    sqlite3_stmt* statement = nullptr;
    bool in_use = false;
  };

  // SQLite's own waiting pauses for up to 100 ms, in which others can take a lock again and again.
  struct Wait {
    std::chrono::milliseconds patience{5000};
    std::chrono::steady_clock::time_point begun;
  };
  static int wait_for_lock(void* wait, int times_before);

  std::filesystem::path file_;  // as the caller named it
  Mode mode_;
  sqlite3* connection_ = nullptr;
  Wait wait_;
  int open_statements_ = 0;
  std::int64_t calls_left_ = 0;                               // how long statements may still run
  std::int64_t known_bytes_ = 0;                              // the file's size that calls_left_ was derived from
  std::map<std::string, CachedStatement, std::less<>> kept_;  // prepared once, by their text
};

// Bytes that are stored as they are, for bind.
struct Blob {
  std::string_view bytes;
};

// One use of a prepared statement: bind, step, read. The destructor resets it, so that no read lock outlives it.
class Statement {
 public:
  Statement(Database& database, std::string_view sql);
  template <class... Values>
  Statement(Database& database, std::string_view sql, const Values&... values) : Statement(database, sql) {
    (bind(values), ...);
  }
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // Binds the next parameter, from left to right. NaN and `missing` become NULL; the caller stores which it was.
  Statement& bind(std::int64_t value);
  Statement& bind(int value) { return bind(std::int64_t{value}); }
  Statement& bind(double value);
  Statement& bind(std::string_view value);
  Statement& bind(const std::string& value) { return bind(std::string_view(value)); }
  Statement& bind(const char* value) { return bind(std::string_view(value)); }
  template <class T>
  Statement& bind(const std::optional<T>& value) {
    return value ? bind(*value) : bind(std::nullopt);
  }
  Statement& bind(Blob blob);
  Statement& bind(std::nullopt_t);

  bool step();  // true while there is a row
  void run();   // to the end, then ready for the next round of bind

  bool is_null(int column) const;
  std::int64_t integer(int column) const;   // 0 for NULL
  double real(int column) const;            // `missing` for NULL
  std::string text(int column) const;       // empty for NULL
  std::string_view blob(int column) const;  // until the next step

 private:
  void check(int code) const;

  Database& database_;
  sqlite3_stmt* statement_;
  Database::CachedStatement* kept_;  // null: this one is the statement's only owner
  int bound_ = 0;
};

template <class... Values>
void Database::run(std::string_view sql, const Values&... values) {
  Statement(*this, sql, values...).run();
}

template <class... Values>
void Database::insert(std::string_view into, std::string_view columns, const Values&... values) {
  std::string places;
  for (std::size_t i = 0; i < sizeof...(values); ++i) places += i == 0 ? "?" : ", ?";
  run("INSERT " + std::string(into) + " (" + std::string(columns) + ") VALUES (" + places + ")", values...);
}

template <class... Values>
std::int64_t Database::integer(std::string_view sql, const Values&... values) {
  return find(sql, values...).value_or(0);
}

template <class... Values>
std::optional<std::int64_t> Database::find(std::string_view sql, const Values&... values) {
  Statement row(*this, sql, values...);
  return row.step() && !row.is_null(0) ? std::optional(row.integer(0)) : std::nullopt;
}

template <class... Values>
std::string Database::text(std::string_view sql, const Values&... values) {
  return find_text(sql, values...).value_or("");
}

template <class... Values>
std::optional<std::string> Database::find_text(std::string_view sql, const Values&... values) {
  Statement row(*this, sql, values...);
  return row.step() ? std::optional(row.text(0)) : std::nullopt;
}

template <class... Values>
bool Database::has(std::string_view sql, const Values&... values) {
  return Statement(*this, sql, values...).step();
}

// What `read` makes of each row.
template <class Read>
auto read_all(Statement&& rows, const Read& read) {
  std::vector<decltype(read(rows))> all;
  while (rows.step()) all.push_back(read(rows));
  return all;
}

template <class... Values>
std::vector<std::int64_t> Database::integers(std::string_view sql, const Values&... values) {
  return read_all(Statement(*this, sql, values...), [](const Statement& row) { return row.integer(0); });
}

template <class... Values>
std::vector<std::string> Database::texts(std::string_view sql, const Values&... values) {
  return read_all(Statement(*this, sql, values...), [](const Statement& row) { return row.text(0); });
}

// Rolls back unless committed. Inside another transaction it is a savepoint of that one.
class Transaction {
 public:
  enum class Kind { write, read };  // read: one state of the file, even while others write

  explicit Transaction(Database& database, Kind kind = Kind::write);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  void commit();

 private:
  Database& database_;
  bool nested_;
  bool open_ = true;
};

// Long work on a file in slices, so that nobody waits long for the write lock. Inside storage/ only.
// Calls `piece` until it returns false. A piece takes a few milliseconds at most. Pieces are written in transactions of
// about 50 ms, and between two of them others get the write lock. If the process is killed, or `piece` throws, the
// slices before stay, so each piece must leave something that can be continued or undone.
//
// Inside a transaction of the caller, everything belongs to that one.
void in_slices(Database& database, const std::function<bool()>& piece);

}  // namespace stepladder
