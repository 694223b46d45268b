// The orders of this user that the program carries out later: connect to a machine, start a command there, continue an
// experiment. Kept outside every project, in $XDG_STATE_HOME/stepladder/orders.db, which only this user may read, since
// projects and folders are passed on and a stranger may have written anything into them (docs/security.md). Nothing in
// a project makes the program act unless the order is here.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "storage/errors.h"

namespace stepladder {

class Database;

namespace order_kind {

inline constexpr const char* machine = "machine";  // of a project, by alias (MachineStore)
inline constexpr const char* far_run = "far run";  // of a project, by uid (MachineStore)
inline constexpr const char* launch = "launch";    // of a project or a folder of journals, by uid (LaunchedRuns)
inline constexpr const char* watch = "watch";      // of a project, by uid: the stores that have joined the run
inline constexpr const char* record = "record";    // of an experiment's folder, by the id in its plan

}  // namespace order_kind

struct Order {
  std::string subject;  // whom it is about: a machine's alias, a uid
  std::string text;     // JSON, as its writer understands it
};

// One thread at a time; several processes may each have theirs. Reading never creates the file. Every verb throws
// StorageError.
class OrderBook {
 public:
  OrderBook();                                     // this user's
  explicit OrderBook(std::filesystem::path file);  // empty: in memory, gone with this object
  OrderBook(OrderBook&&) noexcept;
  ~OrderBook();

  // `place`: the project (RunStore::place) or folder that the order belongs to.
  std::optional<std::string> find(const std::string& kind, const std::string& place, const std::string& subject);
  std::vector<Order> all(const std::string& kind, const std::string& place);                      // by subject
  void put(const std::string& kind, const std::string& place, const std::vector<Order>& orders);  // all or none
  void remove(const std::string& kind, const std::string& place, const std::string& subject);

  // Whether there is such an order of any place: the runs of a project that was moved are still this user's.
  bool has_anywhere(const std::string& kind, const std::string& subject);

  const std::filesystem::path& file() const { return file_; }

 private:
  Database* opened(bool creates);

  std::filesystem::path file_;
  std::unique_ptr<Database> database_;  // opened at first use
  std::set<std::string> subjects_;      // of has_anywhere, "kind subject", when the file had this time
  std::filesystem::file_time_type read_at_ = {};
};

// $XDG_STATE_HOME/stepladder/orders.db, else the same under ~/.local/state.
std::filesystem::path default_order_file();

// The orders about one project. A part of RunStore, which has its threads, locks and errors.
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
