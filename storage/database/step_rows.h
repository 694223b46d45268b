// Rows of `steps`, written and read. Inside storage/ only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/database/column_values.h"
#include "storage/database/database.h"
#include "storage/records.h"

namespace stepladder {

enum class Completion;  // storage/database/following/follow_store.h

// Both ends are included. Steps beyond the largest count are another program's, and aren't read.
struct StepRange {
  std::int64_t first = -largest_count;
  std::int64_t last = largest_count;

  StepRange readable() const { return {std::max(first, -largest_count), std::min(last, largest_count)}; }
};

// A step that exists already moves to superseded_steps, and the newer one counts. Losses are kept to the bit, the other
// values to 1e-8 of theirs and the parts to half a microsecond.
void insert_steps(Database& database, RunId run, std::span<const StepRecord> steps);

// Completes the rows of these records' steps with what the records know; a step that isn't stored is inserted.
void complete_steps(Database& database, RunId run, std::span<const StepRecord> steps, Completion how);

// Reads a run's steps in order, some thousands at a time. No read lock is held between two calls, so that others, and
// the reader itself, can write meanwhile.
class StepReader {
 public:
  enum class Parts { leave_out, read };

  explicit StepReader(Database& database, RunId run, StepRange range = {}, Parts parts = Parts::leave_out)
      : database_(database), run_(run), range_(range.readable()), parts_(parts) {}

  struct Row {
    StepRecord step;  // the newest attempt, without its parts unless they are asked for
    bool repeated = false;
  };
  bool read(std::vector<Row>& rows);  // replaces `rows`; false: no rows left

 private:
  Database& database_;
  const RunId run_;
  StepRange range_;  // the steps left to read
  const Parts parts_;
  bool done_ = false;
};

Series read_series(Database& database, RunId run, StepRange range = {});
StepParts read_mean_parts(Database& database, RunId run, std::int64_t warmup_steps);  // as RunStore::mean_parts

}  // namespace stepladder
