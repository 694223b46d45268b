// Rows about a run besides its steps: system metrics, text samples, console output, operator times. Inside storage/
// only.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "storage/database/database.h"
#include "storage/records.h"

namespace stepladder {

void insert_system_metrics(Database& database, const SystemMetrics& sample);
void insert_text_sample(Database& database, const TextSample& sample);
void insert_console(Database& database, const ConsoleText& printed);
void replace_profile(Database& database, const StepProfile& profile);

// Samples after `after`, at most `most`, in the order of time; by default all.
std::vector<SystemMetrics> read_system_metrics(Database& database, RunId run,
                                               double after = -std::numeric_limits<double>::infinity(),
                                               std::int64_t most = -1);

// Reads them in order, some thousands at a time; no read lock is held between two calls.
class SystemMetricsReader {
 public:
  SystemMetricsReader(Database& database, RunId run) : database_(database), run_(run) {}
  bool next(SystemMetrics& sample);  // false: none left

 private:
  Database& database_;
  const RunId run_;
  std::vector<SystemMetrics> samples_;
  std::size_t place_ = 0;
};

std::vector<TextSample> read_text_samples(Database& database, RunId run);
std::string read_console(Database& database, RunId run, std::size_t most);
StepProfile read_profile(Database& database, RunId run);

}  // namespace stepladder
