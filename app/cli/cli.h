// The command line: reads the arguments, runs the command, prints. Data goes to stdout, messages to stderr.
#pragma once

#include <filesystem>
#include <string>

#include "app/screenshot_request.h"

namespace stepladder {

// The two ways to start the window; null in a build without the desktop. Both return an exit status and may throw.
struct Desktop {
  int (*open)(const std::filesystem::path& database) = nullptr;
  int (*screenshot)(const ScreenshotRequest& request) = nullptr;
};

// Everything that `main` does. Catches every exception and turns it into a sentence on stderr and an exit status.
// `commit` is what was built ("0220aa17c3d2"), for --version; empty: unknown.
int run_command_line(int argc, char** argv, const Desktop& desktop, const std::string& commit);

}  // namespace stepladder
