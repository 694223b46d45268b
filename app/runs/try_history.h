// A series of tries (docs/try.md) as the project has it, for the command line and the window: values, words and JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/runs/run_json.h"
#include "storage/database/tries/try_store.h"

namespace stepladder {

struct TryHistory {
  TrySeries series;
  std::vector<Try> tries;  // by number; the first is the state that the series began with
  std::vector<TryRun> runs;
};

// A stored answer; an empty object if it isn't one. Its fields, if they are of the expected kind.
Json try_answer(const std::string& text);
double try_number(const Json& answer, const char* key);
std::string try_text(const Json& answer, const char* key);

bool is_time_metric(const std::string& metric);                   // then an interval is of the factor
std::string try_metric(const TryHistory& history);                // "val_bpb", "tokens_per_s"
double try_value(const TryHistory& history, std::int64_t state);  // the mean of a state's runs, in its unit
std::int64_t runs_of_try(const TryHistory& history, std::int64_t number);
std::string try_verdict(const Try& it);  // "kept", "running"

// "val_bpb -0.0042, 95 % interval -0.007 to -0.001", of an answer's JSON; empty without a difference.
std::string change_text(const Json& answer);

Json logged_try_json(const TryHistory& history, const Try& it);  // as `try -m` printed it, and what it was
Json status_json(const TryHistory& history);
Json shown_try_json(const TryHistory& history, const Try& it);

}  // namespace stepladder
