// What --help, the man page and completion say of each command beyond its options: group, examples, exit statuses.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>

namespace stepladder {

struct CommandHelp {
  const char* command;        // "record gate"
  const char* group;          // of the list of commands; empty for a command beneath another
  const char* examples;       // one a line: the command without "stepladder", a tab, what it does
  const char* statuses = "";  // beyond 0, 1, 2 and 130
};

// In the order in which help lists them.
std::span<const CommandHelp> all_command_help();

// Null for a hidden command.
const CommandHelp* help_of(const CLI::App& command);

// What a value of an option or argument is called: RUN, FILE, N, "bf16|fp32". Completion acts on RUN, LADDER and FILE.
std::string metavar(const CLI::Option& option);

}  // namespace stepladder
