#include "storage/database/orders/project_orders.h"

#include <filesystem>

#include "storage/checked_text.h"
#include "storage/database/database.h"
#include "storage/database/run_rows.h"

namespace stepladder {

ProjectOrders::ProjectOrders(Database& project)
    : project_(project), book_(project.file().empty() ? OrderBook(std::filesystem::path()) : OrderBook()) {
  std::error_code error;
  if (!project.file().empty()) path_ = std::filesystem::weakly_canonical(project.file(), error).string();
}

std::string ProjectOrders::place() {
  Statement row(project_, "SELECT value FROM settings WHERE key = 'project_id'");
  const auto id = row.step() ? Uid::from(row.text(0)) : std::nullopt;
  return id ? id->text() + " " + path_ : "";
}

std::optional<std::string> ProjectOrders::find(const std::string& kind, const std::string& subject) {
  return book_.find(kind, place(), subject);
}

std::vector<Order> ProjectOrders::all(const std::string& kind) {
  return book_.all(kind, place());
}

void ProjectOrders::put(const std::string& kind, const std::vector<Order>& orders) {
  if (place().empty())
    Statement(project_, "INSERT OR REPLACE INTO settings (key, value) VALUES ('project_id', ?)")
        .bind(random_uid())
        .run();
  book_.put(kind, place(), orders);
}

void ProjectOrders::remove(const std::string& kind, const std::string& subject) {
  book_.remove(kind, place(), subject);
}

}  // namespace stepladder
