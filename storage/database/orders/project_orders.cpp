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
