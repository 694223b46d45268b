// One command of the program: a function that declares its options and returns the function to run once they are
// parsed. app/cli/cli.cpp lists the commands.
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

// Validators of an option's value. A count may be written as 1e9 too.
CLI::Validator positive_count();
CLI::Validator positive_number();
CLI::Validator between(double low, double high);

// Options for facts that a log lacks, for `import` and `watch`.
void add_import_options(CLI::App& command, ImportOptions& options);

void print(const Json& json);
int complain(const std::exception& error, int status);  // prints the error on stderr; returns `status`

// Call first: reopens standard streams that the caller has closed, so that no file gets their numbers.
void open_standard_streams();
// Call last: flushes stdout; returns `status`, or exit_failed if stdout couldn't be written.
int close_output(int status);

// Throws UsageError if writing `out` would overwrite the database or SQLite's files beside it.
void keep_off_database(const std::filesystem::path& out, const std::filesystem::path& database);

DeviceReport probe_machine();  // the machine's hardware; blocks until the engine has detected it

// Ctrl-C and termination: the first sets interrupted(), the second ends the process at once.
void catch_signals();
bool interrupted();

}  // namespace stepladder
