// The rooflines of a trace's kinds of work as a table, as JSON, and in a sentence: for window and command line.
#pragma once

#include <string>
#include <vector>

#include "app/figures/tables.h"
#include "app/run_json.h"
#include "storage/database/run_store.h"
#include "storage/database/traces/trace_store.h"
#include "storage/traces/kind_roofline.h"

namespace stepladder {

// Of the named device and precision; of an empty name, of the run that the trace is of, else of what the trace says.
Ceiling ceiling_of(RunStore& store, const StoredTrace& trace, const std::string& hardware,
                   const std::string& precision);

Json roofline_json(const std::vector<KindRoofline>& kinds, const Ceiling& ceiling);
TextTable roofline_table(const std::vector<KindRoofline>& kinds);

// Sentences: what the ceiling is, or what is missing to have one; and why a kind may be above it. `trace` is its
// number.
std::string ceiling_text(const std::vector<KindRoofline>& kinds, const Ceiling& ceiling, std::int64_t trace);

}  // namespace stepladder
