// The times of passes (`stepladder profile`) as rows, their tables, and what they teach: the same for the command line
// and the window. Pure.
#pragma once

#include <string>
#include <vector>

#include "app/runs/run_json.h"
#include "app/text/text_table.h"
#include "engine/call_times.h"
#include "storage/database/traces/trace_store.h"

namespace stepladder {

struct CallRow {
  CallTimes times;
  double mean_ms = 0, median_ms = 0, std_ms = 0, min_ms = 0, max_ms = 0, total_ms = 0;
};

std::vector<CallRow> call_rows(std::vector<CallTimes> times);  // the lowest mean first
std::vector<CallRow> call_rows(const StoredPasses& passes);    // the same of kept ones
Json rows_json(const std::vector<CallRow>& rows, bool is_synced);
std::string rows_csv(const std::vector<CallRow>& rows);
TextTable rows_table(const std::vector<CallRow>& rows);

// Only as many digits as the calls agree on, at most three; 281.4 with a standard error of 14 is "280 ms".
std::string significant_ms(double ms, double error_ms);

// Sentences, each from these numbers: what warm-up does to the spread, whether mixed precision pays, whether forward
// and backward add up, and which rows spread too much to be trusted.
std::vector<std::string> lessons_of(const std::vector<CallRow>& rows);

// Explains the flag no-sync for this device.
std::string no_sync_sentence(bool on_cpu);

}  // namespace stepladder
