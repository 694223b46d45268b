// All commands, and the functions that several of them share.
#pragma once

#include "app/cli/subcommand.h"
#include "app/session/session.h"
#include "storage/records.h"

namespace stepladder {

#define COMMAND(name) Subcommand name##_command(CLI::App& app, CommonOptions& common);
#include "app/cli/commands.def"
#undef COMMAND

// ladders_command.cpp
CLI::App* add_show(CLI::App& ladder, std::string& word, const char* what);  // `ladder show`, `sweep show`
int show_ladder(const std::string& word, const CommonOptions& common);
void print_ladder(const Ladder& ladder, const std::vector<LoadedRun>& runs, const LadderPlan& plan,
                  const CommonOptions& common, const std::filesystem::path& database, const RunContext& context);
int print_plan(const LadderRequest& request, const DeviceReport& report, const CommonOptions& common);  // --dry-run

// Of `doctor`: rescue_command.cpp and noise.cpp. The noise is that of equal runs in turns for about `seconds`, at least
// three of each side.
int rescue_database(const std::filesystem::path& out, const CommonOptions& common);
int measure_noise(double seconds, const CommonOptions& common);

// Lists on stderr the runs whose tracker was killed while their program continued, with the command that continues
// recording them. Reads the files only. watch_command.cpp.
void tell_of_unread_outputs(const std::filesystem::path& database);

int print_version(const CommonOptions& common);

}  // namespace stepladder
