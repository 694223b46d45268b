// One command of the program: a function that declares its options and returns what to run once they are parsed.
// app/cli/cli.cpp lists the commands.
#pragma once

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <functional>

#include "app/cli/report.h"
#include "storage/importers/importer.h"

namespace stepladder {

// Options of all commands; set before a command runs.
struct CommonOptions {
  std::filesystem::path database;
  bool json = false;
};

struct Subcommand {
  CLI::App* options;
  std::function<int()> run;  // returns the exit status
};

CLI::App* add_with_json(CLI::App& app, CommonOptions& common, const char* name, const char* what);

// Checks of an option's value. A count may be written as 1e9 too.
CLI::Validator positive_count();
CLI::Validator positive_number();
CLI::Validator between(double low, double high);

// What the user knows of a log that doesn't say it: for `import` and `watch`.
void add_import_options(CLI::App& command, ImportOptions& options);

void print(const Json& json);
int complain(const std::exception& error, int status);  // prints the error on stderr; returns `status`

// Call first: replaces standard streams that the caller has closed, so that no file gets their numbers.
void open_standard_streams();
// Call last: flushes stdout; returns `status`, or exit_failed where stdout couldn't be written.
int close_output(int status);

// Throws UsageError where writing `out` would overwrite the database or what SQLite keeps beside it.
void keep_off_database(const std::filesystem::path& out, const std::filesystem::path& database);

DeviceReport probe_machine();  // what this machine has; blocks until the engine has looked

// Ctrl-C and termination: the first sets interrupted(), the second ends the process at once.
void catch_signals();
bool interrupted();

}  // namespace stepladder
