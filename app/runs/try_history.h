// A series of tries (docs/try.md) as the project has it, for the command line and the window: values, words and JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "app/runs/run_json.h"
#include "storage/database/run_store.h"

namespace stepladder {

struct TryHistory : StoredTries {
  bool is_at_work = false;  // a program works on it; else an open try was interrupted
};

// The folder of a series beside the project; empty: its ladder is gone.
std::filesystem::path tries_folder(RunStore& store, LadderId ladder);
TryHistory history_of(RunStore& store, const TrySeries& series);

// The newest series of the checkout around the folder. One that failed at its beginning counts only if there is no
// other. Asks no git.
std::optional<TrySeries> series_around(RunStore& store, const std::filesystem::path& folder);

// A stored answer; an empty object if it isn't one. Its fields, if they are of the expected kind.
Json try_answer(const std::string& text);
double try_number(const Json& answer, const char* key);
std::string try_text(const Json& answer, const char* key);
bool try_flag(const Json& answer, const char* key);

bool is_time_metric(const std::string& metric);                   // then an interval is of the factor
std::string try_metric(const TryHistory& history);                // "val_bpb", "tokens_per_s"
double try_value(const TryHistory& history, std::int64_t state);  // the mean of a state's runs, in its unit
double shown_value(const TryHistory& history, double value);      // a stored value of a run, in its unit
std::int64_t runs_of_try(const TryHistory& history, std::int64_t number);
std::string try_verdict(const TryHistory& history, const Try& it);  // "kept", "running", "interrupted"
std::string try_reason(const TryHistory& history, const Try& it);   // of the verdict

// "val_bpb -0.0042, 95 % interval -0.007 to -0.001", of an answer's JSON; empty without a difference.
std::string change_text(const Json& answer);

Json logged_try_json(const TryHistory& history, const Try& it);  // as `try -m` printed it, and what it was
Json status_json(const TryHistory& history);
Json shown_try_json(const TryHistory& history, const Try& it);

}  // namespace stepladder
