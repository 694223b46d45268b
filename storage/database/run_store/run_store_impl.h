// What a RunStore consists of. Only its own sources, in this folder, include it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/database/database.h"
#include "storage/database/derived/derived.h"
#include "storage/database/run_store.h"

namespace stepladder {

struct RunStore::Impl {
  explicit Impl(Database::InMemory in_memory);
  Impl(const std::filesystem::path& file, Mode mode);

  Database database;
  Derived derived{database};
  MetricStore metrics{database, derived};
  FollowStore following{database, derived};
  ViewStore views{database};
  TraceStore traces{database};
  ProjectOrders orders{database};
  MachineStore machines{database, orders};
  std::vector<std::string> left_behind;
  std::int64_t seen_version = 0;  // of PRAGMA data_version
  bool has_deleted_left =
      false;  // what killed deletions left: once, since a window looks for dead runs again and again
};

}  // namespace stepladder
