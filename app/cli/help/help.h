// The help of a command in four forms, and what a shell offers at Tab; all from CLI11's tree of commands and the one
// table of groups, examples and exit statuses (command_help.cpp).
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "app/cli/report.h"

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

// For a terminal of that many columns.
std::string help_text(const CLI::App& command, std::size_t columns);

std::string man_page(const CLI::App& app);           // roff, for `man stepladder`
std::string commands_markdown(const CLI::App& app);  // a table of the commands by group, as docs/command-line.md has it
Json help_json(const CLI::App& command);             // name, what, usage, options, examples, commands

// The script that bash, zsh or fish reads. It calls `stepladder complete -- WORDS`, so it never grows old.
std::string completion_script(const std::string& shell);

// Lines "candidate<tab>what it is" for the last of these words, which may be empty; ":files" asks for file names.
std::vector<std::string> completions(const CLI::App& app, const std::vector<std::string>& words,
                                     const std::filesystem::path& database);

}  // namespace stepladder
