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
  Parts parts{database, derived};
};

}  // namespace stepladder
