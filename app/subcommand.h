// A command of the program: a function that tells CLI11 its options and returns what is to be done once they are read.
// app/cli.cpp is the list of them.
#pragma once

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <functional>

#include "app/report.h"

namespace stepladder {

// What all commands share; filled before one of them runs.
struct CommonOptions {
  std::filesystem::path database;
  bool json = false;
};

struct Subcommand {
  CLI::App* options;
  std::function<int()> run;  // returns the exit status
};

CLI::App* add_with_json(CLI::App& app, CommonOptions& common, const char* name, const char* what);

void print(const Json& json);
int complain(const std::exception& error, int status);  // a sentence on stderr; returns the status

// Ctrl-C and termination: the first is to be asked for, the second ends the process at once.
void catch_signals();
bool interrupted();

}  // namespace stepladder
