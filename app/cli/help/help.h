// The help of a command in four forms, all from CLI11's tree of commands and the table of command_help.h.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "app/cli/report.h"

namespace stepladder {

// For a terminal of that many columns.
std::string help_text(const CLI::App& command, std::size_t columns);

std::string man_page(const CLI::App& app);           // roff, for `man stepladder`
std::string commands_markdown(const CLI::App& app);  // a table of the commands by group, as docs/command-line.md has it
Json help_json(const CLI::App& command);             // name, what, usage, options, examples, commands

}  // namespace stepladder
