// What a run recorded besides its steps and metrics. A part of RunStore, which has its threads, locks and errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "storage/records.h"

namespace stepladder {

// Changes of a checkout as git prints them.
struct RunPatch {
  std::string commit;                 // that they are against
  std::string text;                   // empty: too long, or none
  std::int64_t bytes = 0;             // its length; -1: unknown
  std::vector<std::string> left_out;  // changed files that aren't in it: too large, or like secrets
};

class Database;
class TraceStore;

class Recordings {
 public:
  Recordings(Database& database, TraceStore& traces) : database_(database), traces_(traces) {}

  std::vector<SystemMetrics> system_metrics(RunId id);  // in the order of time
  void keep_system_metrics(std::span<const SystemMetrics> samples);
  std::vector<TextSample> samples(RunId id);  // in the order of steps
  // The output of a watched program: the last `most` bytes, and up to a piece more.
  std::string console(RunId id, std::size_t most = 1 << 20);
  // The most expensive operator first. Of a run whose operators weren't timed here: that of the newest trace attached
  // to it.
  StepProfile profile(RunId id);
  // What was uncommitted where the run was started; without bytes if nothing was, or this was not to be kept.
  RunPatch patch(RunId id);
  void keep_patch(RunId id, const RunPatch& patch);  // one that has nothing isn't written
  // The mean time of a step's parts after the warm-up; `missing` if none of the last thousand steps has it.
  StepParts mean_parts(const Run& run, std::int64_t warmup_steps);

 private:
  Database& database_;
  TraceStore& traces_;
};

}  // namespace stepladder
