// What a shell offers at Tab: commands, options, values of closed sets, runs, ladders.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

namespace stepladder {

// The script that bash, zsh or fish reads. It calls `stepladder complete -- WORDS`, so it never grows old.
std::string completion_script(const std::string& shell);

// Lines "candidate<tab>what it is" for the last of these words, which may be empty; ":files" asks for file names.
std::vector<std::string> completions(const CLI::App& app, const std::vector<std::string>& words,
                                     const std::filesystem::path& database);

}  // namespace stepladder
