// Rows of `steps`, written and read. Inside storage/ only.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "storage/database/database.h"
#include "storage/records.h"

namespace stepladder {

// Both ends are included.
struct StepRange {
  std::int64_t first = std::numeric_limits<std::int64_t>::min();
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
};

// A step that exists already is kept, and the newer attempt counts.
void insert_step(Database& database, RunId run, const StepRecord& step);
void insert_steps(Database& database, RunId run, std::span<const StepRecord> steps);  // without their parts

// Reads a run's steps in order, some thousands at a time. No read lock is held between two calls, so that others, and
// the reader itself, can write meanwhile.
class StepReader {
 public:
  explicit StepReader(Database& database, RunId run, StepRange range = {})
      : database_(database), run_(run), range_(range) {}

  struct Row {
    StepRecord step;  // the newest attempt, without its parts
    bool repeated = false;
  };
  bool read(std::vector<Row>& rows);  // replaces `rows`; false: no rows left

 private:
  Database& database_;
  const RunId run_;
  StepRange range_;  // the steps left to read
  bool done_ = false;
};

Series read_series(Database& database, RunId run, StepRange range = {});
std::vector<StepRecord> read_step_records(Database& database, RunId run);
StepParts read_mean_parts(Database& database, RunId run, std::int64_t warmup_steps);  // as RunStore::mean_parts

}  // namespace stepladder
