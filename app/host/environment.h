// The machine, program and folder that started a run: stored with each run, so that it can be repeated.
#pragma once

#include <filesystem>
#include <string>

namespace stepladder {

// Folder of data files and fonts beside the program; STEPLADDER_ASSETS overrides it.
std::filesystem::path assets_folder();

bool display_is_there();

std::string this_host();  // this machine's name, as in environment_json

// main calls it once, for the command line in environment_json, which keeps no secrets (app/text/secrets.h).
void remember_command_line(int argc, char** argv);

// JSON object: program, command_line, folder, host, system, git {commit, branch, dirty} of the current folder, or null
// if it isn't a git checkout. Starts git, so it takes some milliseconds; computed once per process.
const std::string& environment_json();

// The same of a state of a checkout that the caller knows: git isn't asked, and no branch is named. Empty commit: none.
std::string environment_of(const std::string& commit, bool is_dirty);

// The same of one that ran on another machine, by its alias and host: neither this folder nor this system.
std::string environment_at(const std::string& machine, const std::string& host, const std::string& commit,
                           bool is_dirty);

// The environment of a run that this process continues: `hosts` lists the hosts that trained it, if it was begun on
// another one.
std::string continued_environment(const std::string& before);

}  // namespace stepladder
