// Kept results of `stepladder profile`: how long each call of a model's passes took. A part of RunStore, which has its
// threads, locks and errors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/records.h"

namespace stepladder {

class Database;

struct StoredCalls {
  std::string computation;  // "forward", "backward", "forward_backward"
  std::string precision;    // "fp32", "bf16"
  int warmup = 0;
  std::vector<double> ms;  // of each timed call
};

struct StoredPasses {
  std::int64_t id = 0;
  std::string name;
  double measured_at = missing;  // unix seconds
  std::string host, hardware, device, model;
  std::int64_t batch = 0, seq = 0, vocab = 0, threads = 0;  // threads: 0 is not known
  bool is_synced = true;                                    // false: the clock didn't wait for the device
  std::vector<StoredCalls> rows;                            // empty in lists
};

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
