// `stepladder profile import | list | show | diff | remove`: the traces of other programs' profilers.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "app/cli/subcommand.h"
#include "app/import/trace_import.h"

namespace stepladder {

// Reads the files of one trace's ranks and keeps it; says on stderr what was left out and what makes it doubtful.
// Nullopt: interrupted, and nothing is kept. `run`: number or name of the run that it was taken of; empty: none.
std::optional<StoredTrace> import_trace(const TraceFiles& files, const std::string& run, bool again,
                                        const CommonOptions& common);

// Adds them to `profile`. Parsing one of them sets `chosen`.
void add_trace_commands(CLI::App& profile, CommonOptions& common, std::function<int()>& chosen);

}  // namespace stepladder
