// The orders about one project. A part of RunStore, which has its threads, locks and errors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "storage/database/orders/order_book.h"

namespace stepladder {

class Database;

// They belong to the file with this id at this path: a copy of it has the same id and another path, a stranger's file
// at the same path another id. Both have none of them.
class ProjectOrders {
 public:
  explicit ProjectOrders(Database& project);

  std::optional<std::string> find(const std::string& kind, const std::string& subject);
  std::vector<Order> all(const std::string& kind);                      // by subject
  void put(const std::string& kind, const std::vector<Order>& orders);  // all or none
  void remove(const std::string& kind, const std::string& subject);

 private:
  std::string place();  // empty: there are none

  Database& project_;
  OrderBook book_;
  std::string path_;  // of the project, without links
};

}  // namespace stepladder
