// Reasons to distrust a claim, each with the arithmetic that shows it (docs/record.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/speedrun/record_pool.h"
#include "storage/speedrun/record_rule.h"

namespace stepladder {

// Runs that began further apart are of different sessions.
inline constexpr std::int64_t session_gap_s = 12 * 3'600;

struct RecordFlag {
  std::string id;
  std::string why;
};

// Flags of the pool and of the baseline (null: none), in a fixed order. Without a rule, the baseline is expected to
// come from the same machine and day.
std::vector<RecordFlag> hygiene_flags(const RecordPool& pool, const RecordPool* baseline, const RecordRule* rule);

}  // namespace stepladder
