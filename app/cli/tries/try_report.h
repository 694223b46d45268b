// Tries as text, read from the project alone.
#pragma once

#include <string>

#include "app/runs/try_history.h"
#include "storage/database/run_store.h"

namespace stepladder {

// The newest series of the checkout around the current folder. Throws UsageError if there is none.
TryHistory try_history(RunStore& store);
const Try& try_named(const TryHistory& history, std::int64_t number);  // throws UsageError

std::string log_text(const TryHistory& history);
std::string log_tsv(const TryHistory& history);  // as autoresearch's results.tsv
std::string status_text(const TryHistory& history);

}  // namespace stepladder
