// What a RunStore consists of. Only run_store.cpp and run_store_steps.cpp include it.
#pragma once

#include "storage/database/database.h"
#include "storage/database/derived/derived.h"
#include "storage/database/run_store.h"

namespace stepladder {

struct RunStore::Impl {
  explicit Impl(Database::InMemory in_memory);
  Impl(const std::filesystem::path& file, Mode mode);

  Database database;
  Derived derived{database};
  Settings settings{database};
  Upkeep upkeep{database};
  CurationStore curation{database};
  HiddenRuns hidden_runs{database};
  Bin bin{database};
  MetricStore metrics{database, derived};
  TraceStore traces{database};
  Recordings recordings{database, traces};
  ProcessStore processes{database, derived, metrics, bin};
  FollowStore following{database, derived};
  ViewStore views{database};
  ProjectOrders orders{database};
  MachineStore machines{database, orders};
  TryStore tries{database};
};

}  // namespace stepladder
