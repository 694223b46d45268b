// Traces as JSON and as tables for a terminal.
#pragma once

#include <string>
#include <vector>

#include "app/runs/run_json.h"
#include "storage/database/traces/trace_store.h"
#include "storage/traces/anatomy.h"
#include "storage/traces/difference.h"

namespace stepladder {

Json trace_json(const StoredTrace& trace);                                  // without steps and operators
Json trace_details_json(const StoredTrace& trace, const Anatomy& anatomy);  // with them
std::string traces_table(const std::vector<StoredTrace>& traces);
std::string trace_text(const StoredTrace& trace, bool all_operators, bool steps);
std::string anatomy_text(const StoredTrace& trace, const Anatomy& anatomy, bool by_block);

// `before` and `after` name the two sides.
Json difference_json(const ProfileDifference& difference, const std::string& before, const std::string& after);
std::string difference_text(const ProfileDifference& difference, const std::string& before, const std::string& after,
                            bool all);

}  // namespace stepladder
