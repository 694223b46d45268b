// The commands beneath `stepladder profile`. Each function declares some, which set `chosen` if they are parsed.
#pragma once

#include <optional>
#include <string>

#include "app/cli/subcommand.h"
#include "app/import/trace_import.h"

namespace stepladder {

// Reads the files of one trace's ranks and keeps it; says on stderr what was left out and what makes it doubtful.
// Nullopt: interrupted, and nothing is kept. `run`: number or name of the run that it was taken of; empty: none.
std::optional<StoredTrace> import_trace(const TraceFiles& files, const std::string& run, bool again,
                                        const CommonOptions& common);

void add_trace_commands(CLI::App& profile, CommonOptions& common, ChosenCommand& chosen);
void add_trace_run_command(CLI::App& profile, CommonOptions& common, ChosenCommand& chosen);  // trace_run.cpp
void add_pass_command(CLI::App& profile, CommonOptions& common, ChosenCommand& chosen);       // pass_command.cpp

}  // namespace stepladder
