// Traces as JSON and as tables for a terminal.
#pragma once

#include <string>
#include <vector>

#include "app/runs/run_json.h"
#include "storage/database/traces/trace_store.h"
#include "storage/traces/anatomy.h"
#include "storage/traces/difference.h"
#include "storage/traces/several.h"

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

// Several traces beside each other, and the rows that only later ones have.
Json several_json(const SeveralTraces& several, const std::vector<std::string>& titles);
std::string several_text(const SeveralTraces& several, const std::vector<std::string>& titles, bool all);

}  // namespace stepladder
