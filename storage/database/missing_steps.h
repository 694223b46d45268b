// Counts the steps of a run that the file lacks. Inside storage/, and for whoever continues a run.
#pragma once

#include <cstdint>
#include <string>

#include "storage/records.h"

namespace stepladder {

class Database;

struct MissingSteps {
  std::int64_t expected = 0;
  std::int64_t missing = 0;
  std::int64_t first = 0;  // of the missing ones
  std::int64_t last = 0;
};

// Counts the stored steps from `first` to `last`, which may be any numbers.
std::int64_t count_stored_steps(Database& database, RunId run, std::int64_t first, std::int64_t last);

// The missing steps from `first` to `last`. Reads as many rows.
MissingSteps missing_steps(Database& database, RunId run, std::int64_t first, std::int64_t last);

// "1,229 of 4,030 steps are stored; 2,801 between 1,230 and 4,030 are missing"; empty if none are.
std::string missing_steps_text(const MissingSteps& steps);

}  // namespace stepladder
