// All commands, in the order in which --help lists them. Each declares its options where it is implemented.
#pragma once

#include "app/cli/subcommand.h"
#include "app/screenshot_request.h"
#include "app/session/session.h"
#include "storage/records.h"

namespace stepladder {

// training_commands.cpp
Subcommand train_command(CLI::App& app, CommonOptions& common);
Subcommand ladder_command(CLI::App& app, CommonOptions& common);

Subcommand sweep_command(CLI::App& app, CommonOptions& common);
Subcommand stages_command(CLI::App& app, CommonOptions& common);
Subcommand import_command(CLI::App& app, CommonOptions& common);
Subcommand watch_command(CLI::App& app, CommonOptions& common);   // live/
Subcommand follow_command(CLI::App& app, CommonOptions& common);  // live/

// run_commands.cpp
Subcommand runs_command(CLI::App& app, CommonOptions& common);
Subcommand show_command(CLI::App& app, CommonOptions& common);
Subcommand get_command(CLI::App& app, CommonOptions& common);

Subcommand edit_command(CLI::App& app, CommonOptions& common);

// bin_command.cpp
Subcommand bin_command(CLI::App& app, CommonOptions& common);
Subcommand delete_command(CLI::App& app, CommonOptions& common);
Subcommand restore_command(CLI::App& app, CommonOptions& common);

// ladders_command.cpp
Subcommand ladders_command(CLI::App& app, CommonOptions& common);
CLI::App* add_show(CLI::App& ladder, std::string& word, const char* what);  // `ladder show`, `sweep show`
int show_ladder(const std::string& word, const CommonOptions& common);
void print_ladder(const Ladder& ladder, const std::vector<LoadedRun>& runs, const LadderPlan& plan,
                  const CommonOptions& common, const std::filesystem::path& database, const RunContext& context);
int print_plan(const LadderRequest& request, const DeviceReport& report, const CommonOptions& common);  // --dry-run

// training_commands.cpp: pause, unpause and stop, for a run of any process
Subcommand request_command(CLI::App& app, CommonOptions& common, RunRequest request, const char* name,
                           const char* what);

Subcommand compare_command(CLI::App& app, CommonOptions& common);
Subcommand confirm_command(CLI::App& app, CommonOptions& common);
Subcommand operators_command(CLI::App& app, CommonOptions& common);
Subcommand record_command(CLI::App& app, CommonOptions& common);  // record/
Subcommand try_command(CLI::App& app, CommonOptions& common);     // tries/
Subcommand mcp_command(CLI::App& app, CommonOptions& common);     // tries/
Subcommand check_command(CLI::App& app, CommonOptions& common);   // run_commands.cpp
Subcommand mfu_command(CLI::App& app, CommonOptions& common);
Subcommand export_command(CLI::App& app, CommonOptions& common);
Subcommand profile_command(CLI::App& app, CommonOptions& common);  // profile/
Subcommand predict_command(CLI::App& app, CommonOptions& common);  // profile/
Subcommand doctor_command(CLI::App& app, CommonOptions& common);
Subcommand machines_command(CLI::App& app, CommonOptions& common);                   // machines/
Subcommand setup_training_command(CLI::App& app, CommonOptions& common);             // setup/
int rescue_database(const std::filesystem::path& out, const CommonOptions& common);  // rescue_command.cpp
Subcommand worker_processes_command(CLI::App& app);                                  // hidden; worker.cpp

// `screenshot`: null in a build without the desktop.
Subcommand screenshot_command(CLI::App& app, CommonOptions& common, int (*screenshot)(const ScreenshotRequest&));

}  // namespace stepladder
