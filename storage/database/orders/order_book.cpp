// The user's orders, in one table. Text is stored as its writers made it.
#include "storage/database/orders/order_book.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "storage/checked_text.h"
#include "storage/database/database.h"
#include "storage/database/run_rows.h"
#include "storage/own_folder.h"
#include "storage/user_folders.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr const char* schema =
    "CREATE TABLE IF NOT EXISTS orders (kind TEXT NOT NULL, place TEXT NOT NULL, subject TEXT NOT NULL, text TEXT NOT "
    "NULL, PRIMARY KEY (kind, place, subject)) WITHOUT ROWID";

std::unique_ptr<Database> open_file(const fs::path& file) {
  make_private_folders(file.parent_path().parent_path());
  make_own_folder(file.parent_path());  // if it can't, opening the file says why
  struct stat status = {};
  if (::stat(file.c_str(), &status) == 0 && status.st_uid != ::geteuid())
    throw StorageError(file.string() + " is another user's, so nothing in it counts");
  // Without a write-ahead log: a home may be on NFS, where only SQLite's rollback journal works for several machines.
  return std::make_unique<Database>(file, Database::Mode::read_write);
}

}  // namespace

fs::path default_order_file() {
  return user_folder("XDG_STATE_HOME", ".local/state") / "stepladder" / "orders.db";
}

OrderBook::OrderBook() : OrderBook(default_order_file()) {}
OrderBook::OrderBook(fs::path file) : file_(std::move(file)) {}
OrderBook::OrderBook(OrderBook&&) noexcept = default;
OrderBook::~OrderBook() = default;

Database* OrderBook::opened(bool creates) {
  if (database_) return database_.get();
  std::error_code error;
  if (!file_.empty() && !creates && !fs::exists(file_, error)) return nullptr;
  try {
    database_ = file_.empty() ? std::make_unique<Database>(Database::InMemory()) : open_file(file_);
    database_->execute(schema);
  } catch (const StorageError& problem) {
    database_.reset();
    throw StorageError("the book of your orders, which machines and trainings are asked from, can't be used: " +
                       std::string(problem.what()) +
                       ". If it is damaged, move it away; then add or adopt your machines again");
  }
  return database_.get();
}

std::optional<std::string> OrderBook::find(const std::string& kind, const std::string& place,
                                           const std::string& subject) {
  Database* const database = opened(false);
  if (!database) return std::nullopt;
  return database->find_text("SELECT text FROM orders WHERE kind = ? AND place = ? AND subject = ?", kind, place,
                             subject);
}

std::vector<Order> OrderBook::all(const std::string& kind, const std::string& place) {
  Database* const database = opened(false);
  if (!database) return {};
  return read_all(Statement(*database, "SELECT subject, text FROM orders WHERE kind = ? AND place = ? ORDER BY subject",
                            kind, place),
                  [](const Statement& row) {
                    return Order{row.text(0), row.text(1)};
                  });
}

void OrderBook::put(const std::string& kind, const std::string& place, const std::vector<Order>& orders) {
  Database& database = *opened(true);
  Transaction all(database);
  for (const Order& order : orders)
    database.insert("OR REPLACE INTO orders", "kind, place, subject, text", kind, place, order.subject, order.text);
  all.commit();
}

void OrderBook::remove(const std::string& kind, const std::string& place, const std::string& subject) {
  Database* const database = opened(false);
  if (!database) return;
  database->run("DELETE FROM orders WHERE kind = ? AND place = ? AND subject = ?", kind, place, subject);
}

bool OrderBook::has_anywhere(const std::string& kind, const std::string& subject) {
  std::error_code error;
  const std::string wanted = kind + " " + subject;
  const auto written_at = fs::last_write_time(file_, error);
  if (!subjects_.contains(wanted) && !error && written_at != read_at_) {
    Statement rows(*opened(false), "SELECT kind || ' ' || subject FROM orders");
    while (rows.step()) subjects_.insert(rows.text(0));
    constexpr std::chrono::seconds clock_tick(2);  // within one, a second change has the same time
    read_at_ = fs::file_time_type::clock::now() - written_at > clock_tick ? written_at : fs::file_time_type();
  }
  return subjects_.contains(wanted);
}

ProjectOrders::ProjectOrders(Database& project)
    : project_(project), book_(project.file().empty() ? OrderBook(std::filesystem::path()) : OrderBook()) {
  std::error_code error;
  if (!project.file().empty()) path_ = std::filesystem::weakly_canonical(project.file(), error).string();
}

std::string ProjectOrders::place() {
  const auto text = project_.find_text("SELECT value FROM settings WHERE key = 'project_id'");
  const auto id = text ? Uid::from(*text) : std::nullopt;
  const bool has_path = project_.file().empty() || !path_.empty();
  return id && has_path ? id->text() + " " + path_ : "";
}

std::optional<std::string> ProjectOrders::find(const std::string& kind, const std::string& subject) {
  const std::string here = place();
  return here.empty() ? std::nullopt : book_.find(kind, here, subject);
}

std::vector<Order> ProjectOrders::all(const std::string& kind) {
  const std::string here = place();
  return here.empty() ? std::vector<Order>() : book_.all(kind, here);
}

void ProjectOrders::put(const std::string& kind, const std::vector<Order>& orders) {
  if (place().empty()) {
    Transaction both(project_);
    project_.run("DELETE FROM settings WHERE key = 'project_id'");
    project_.run("INSERT INTO settings (key, value) VALUES ('project_id', ?)", random_uid());
    both.commit();
  }
  const std::string here = place();  // files without a place would share their orders
  if (here.empty()) throw StorageError(project_.file().string() + " has no id of its own: its settings are damaged");
  book_.put(kind, here, orders);
}

void ProjectOrders::remove(const std::string& kind, const std::string& subject) {
  if (const std::string here = place(); !here.empty()) book_.remove(kind, here, subject);
}

}  // namespace stepladder
