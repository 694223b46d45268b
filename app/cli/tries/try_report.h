// Tries as JSON and as text, read from the project alone.
#pragma once

#include <string>
#include <vector>

#include "app/runs/run_json.h"
#include "storage/database/run_store.h"

namespace stepladder {

// A series with its tries and runs, as the project has them.
struct TryHistory {
  TrySeries series;
  std::vector<Try> tries;
  std::vector<TryRun> runs;
};

// The newest series of the checkout around the current folder. Throws UsageError if there is none.
TryHistory try_history(RunStore& store);
const Try& try_named(const TryHistory& history, std::int64_t number);  // throws UsageError

Json logged_try_json(const TryHistory& history, const Try& it);  // as `try -m` printed it, and what it was
Json status_json(const TryHistory& history);
Json shown_try_json(const TryHistory& history, const Try& it);

std::string log_text(const TryHistory& history);
std::string log_tsv(const TryHistory& history);  // as autoresearch's results.tsv
std::string status_text(const TryHistory& history);

// "val_bpb -0.0042 (95 % interval -0.007 to -0.001)", of an answer's JSON.
std::string change_text(const Json& answer);

}  // namespace stepladder
