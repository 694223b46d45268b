// Where and by what a run was started: kept with each run so that it can be told apart and repeated.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stepladder {

// Folder of data files and fonts beside the program; STEPLADDER_ASSETS overrides it.
std::filesystem::path assets_folder();

bool display_is_there();

// Called once by main; what environment_json tells as the command line.
void remember_command_line(int argc, char** argv);

// JSON object: program, command_line, folder, host, system, git {commit, branch, dirty} of the current folder, or null
// where it is no git checkout. Starts git, so it takes some milliseconds; computed once per process.
const std::string& environment_json();

}  // namespace stepladder
