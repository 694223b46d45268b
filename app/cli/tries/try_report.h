// Tries as text, read from the project alone.
#pragma once

#include <string>

#include "app/runs/try_history.h"
#include "storage/database/run_store.h"

namespace stepladder {

// The newest series of the checkout around the current folder that didn't fail at its beginning; reports a newer one
// that did. Throws UsageError if there is none.
TryHistory try_history(RunStore& store);
const Try& try_named(const TryHistory& history, std::int64_t number);  // throws UsageError

std::string log_text(const TryHistory& history, std::size_t limit);  // of the newest tries
std::string log_tsv(const TryHistory& history, std::size_t limit);   // as autoresearch's results.tsv
std::string show_text(const TryHistory& history, const Try& it);
std::string parts_text(const Json& parts);  // of TrySeriesRunner::take_apart
std::string status_text(const TryHistory& history);

}  // namespace stepladder
