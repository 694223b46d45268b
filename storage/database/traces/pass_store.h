// Kept results of `stepladder profile`: how long each call of a model's passes took. A part of RunStore, which has its
// threads, locks and errors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/analysis/pass_times.h"

namespace stepladder {

class Database;

class PassStore {
 public:
  explicit PassStore(Database& database) : database_(database) {}

  std::int64_t insert(const StoredPasses& passes);  // ignores the id and returns the new one
  std::vector<StoredPasses> list();                 // oldest first
  std::optional<StoredPasses> find(std::int64_t id);
  void remove(std::int64_t id);

 private:
  Database& database_;
};

}  // namespace stepladder
