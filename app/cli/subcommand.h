// A command of the program: a function that tells CLI11 its options and returns what is to be done once they are read.
// app/cli/cli.cpp is the list of them.
#pragma once

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <functional>

#include "app/cli/report.h"

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

// What an option may be given; what else comes is named in one sentence. A count may be written 1e9 too.
CLI::Validator positive_count();
CLI::Validator positive_number();
CLI::Validator between(double low, double high);

void print(const Json& json);
int complain(const std::exception& error, int status);  // a sentence on stderr; returns the status

// At the very start: a stream that our caller has closed becomes one that cannot be used, so that no file gets its
// number.
void open_standard_streams();
// At the very end: sees to it that all of stdout was written, and returns the status that tells if not.
int close_output(int status);

// Throws UsageError where writing `out` would overwrite the database or what SQLite keeps beside it.
void keep_off_database(const std::filesystem::path& out, const std::filesystem::path& database);

// Ctrl-C and termination: the first is to be asked for, the second ends the process at once.
void catch_signals();
bool interrupted();

}  // namespace stepladder
