// The commands that explain the others. help_commands.cpp.
#pragma once

#include "app/cli/subcommand.h"

namespace stepladder {

Subcommand help_command(CLI::App& app, CommonOptions& common);
Subcommand version_command(CLI::App& app, CommonOptions& common, const std::string& commit);  // hidden
int print_version(const CommonOptions& common, const std::string& commit);
Subcommand completion_command(CLI::App& app, CommonOptions& common);
Subcommand complete_command(CLI::App& app, CommonOptions& common);  // hidden: what completion scripts call
Subcommand skill_command(CLI::App& app, CommonOptions& common);

}  // namespace stepladder
