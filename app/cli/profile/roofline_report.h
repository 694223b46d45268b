// The rooflines of a trace's kinds of work as JSON and as a table for a terminal.
#pragma once

#include <string>

#include "app/run_json.h"
#include "storage/database/run_store.h"
#include "storage/database/traces/trace_store.h"
#include "storage/traces/kind_roofline.h"

namespace stepladder {

// Of the device and precision of the run that the trace is of, unless others are named (not empty).
Ceiling ceiling_of(RunStore& store, const StoredTrace& trace, const std::string& hardware,
                   const std::string& precision);

Json roofline_json(const StoredTrace& trace, const Ceiling& ceiling);
std::string roofline_text(const StoredTrace& trace, const Ceiling& ceiling);

}  // namespace stepladder
