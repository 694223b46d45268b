// The rooflines of a trace's kinds of work as a table, as JSON, and in a sentence: for window and command line.
#pragma once

#include <string>
#include <vector>

#include "app/runs/run_json.h"
#include "app/text/text_table.h"
#include "storage/database/run_store.h"
#include "storage/database/traces/trace_store.h"
#include "storage/traces/kind_roofline.h"

namespace stepladder {

// The ceiling of the named device and precision; for an empty name, that of the trace's run, else that of the trace.
Ceiling ceiling_of(RunStore& store, const StoredTrace& trace, const std::string& hardware,
                   const std::string& precision);

Json roofline_json(const std::vector<KindRoofline>& kinds, const Ceiling& ceiling);
TextTable roofline_table(const std::vector<KindRoofline>& kinds);

// Sentences that state the ceiling, or what is missing for one; and why a kind may be above it. `trace` is its
// number, for the commands that help; 0: names none, but views of the window.
std::string ceiling_text(const std::vector<KindRoofline>& kinds, const Ceiling& ceiling, std::int64_t trace);

}  // namespace stepladder
