// Finds the word of a command line that is wrong, and names it with a suggestion. CLI11 parses; what it would report
// in its own words, or of the wrong word, is reported here.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "app/exit_status.h"

namespace stepladder {

// "record gate": the words that call this command; empty for the program itself.
std::string command_path(const CLI::App& command);

const CLI::App& root_of(const CLI::App& command);  // the program itself

// The command that these words name ("record gate"), or null.
const CLI::App* command_named(const CLI::App& app, const std::vector<std::string>& words);

// The deepest command that was parsed.
const CLI::App& parsed_command(const CLI::App& app);

// The words with today's spelling of the command that they begin with, after options such as --db FILE.
std::vector<std::string> respelled(const CLI::App& app, std::vector<std::string> words);

// Throws UsageError for the first word that isn't a command, an option or a value. Call before parsing.
void check_words(const CLI::App& app, const std::vector<std::string>& words);

// Throws UsageError for a word that isn't a command of `at`.
[[noreturn]] void refuse_command(const CLI::App& at, const std::string& word);

// Makes the numbers of all options refuse what isn't a number with a sentence of ours. Call before parsing.
void check_numbers(CLI::App& app);

// CLI11's error in our words; options have the names that `words` give them.
UsageError usage_error(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words);

}  // namespace stepladder
