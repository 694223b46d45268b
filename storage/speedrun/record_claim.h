// Judges whether a pool of runs is a record under a rule, with the figures and the reasons for doubt. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/analysis/means/mean_test.h"
#include "storage/by_enum.h"
#include "storage/speedrun/record_pool.h"
#include "storage/speedrun/record_rule.h"

namespace stepladder {

// Reasons to distrust a claim, each with the arithmetic that shows it (docs/record.md).

// Runs that began further apart are of different sessions.
inline constexpr std::int64_t session_gap_s = 12 * 3'600;

struct RecordFlag {
  std::string id;
  std::string why;
};

// Flags of the pool and of the baseline (null: none), in a fixed order. Without a rule, the baseline is expected to
// come from the same machine and day.
std::vector<RecordFlag> hygiene_flags(const RecordPool& pool, const RecordPool* baseline, const RecordRule* rule);

enum class RecordVerdict { record, misses, cannot_tell, flagged };
const char* to_string(RecordVerdict verdict);  // as in JSON: record, misses, cannot-tell, flagged
inline constexpr auto record_words = by_enum<RecordVerdict>("A record", "Misses the target", "Inconclusive", "Flagged");

struct ClaimOptions {
  std::int64_t plan = 0;      // number of runs that was fixed beforehand; 0: none
  double power = 0.9;         // that needed_n is for
  bool systems_only = false;  // the change leaves the maths alone
};

struct RecordClaim {
  SampleFigures metric;  // of each run's last scheduled evaluation
  Interval metric_ci95;
  double p = missing;    // by the rule's test
  SampleFigures time_s;  // by each log's own clock at that evaluation
  SampleFigures baseline_metric;
  SampleFigures baseline_time_s;
  double speedup = missing;  // baseline's mean time / mean time
  Interval speedup_ci95;
  std::int64_t needed_n = 0;  // runs in all for the asked power; 0: not known
  RecordVerdict verdict = RecordVerdict::cannot_tell;
  std::string reason;   // of the verdict, one sentence
  std::string finding;  // the same without the flags: what the metric and the clock say
  std::vector<RecordFlag> flags;
  std::vector<ExcludedLog> excluded;
};

// Without a rule there is no p, and the verdict is cannot_tell.
RecordClaim judge_record(const RecordPool& pool, const RecordPool* baseline, const std::optional<RecordRule>& rule,
                         const ClaimOptions& options);

// Each run's value, in the pool's order.
std::vector<double> final_values(const RecordPool& pool);
// Each run's time in seconds, of those whose log prints a clock.
std::vector<double> final_times_s(const RecordPool& pool);

// The p value by the rule's test; `missing` where it gives none. Handles values in which higher wins.
double p_of(const SampleFigures& metric, const SampleFigures& baseline, const RecordRule& rule);

// A run of the pool in order of the printed dates; in the pool's order, without dates, if a log prints none.
struct ArrivedRun {
  std::size_t log = 0;  // its place in the pool
  std::optional<std::int64_t> started_at_s;
  double value = missing;
  double time_s = missing;
  double p = missing;  // of this run and those before it
};
std::vector<ArrivedRun> runs_as_they_arrived(const RecordPool& pool, const RecordPool* baseline,
                                             const RecordRule& rule);

}  // namespace stepladder
