// The command line: reads the arguments, calls the session, prints. Data goes to stdout, messages to stderr.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

namespace stepladder {

// What a process ends with; part of the contract with scripts.
enum ExitStatus {
  exit_done = 0,
  exit_failed = 1,
  exit_usage = 2,
  exit_slower = 10,
  exit_cannot_tell = 11,
  exit_implausible = 12,
  exit_loss_not_at_parity = 13,
  exit_interrupted = 130
};

// Something asked for that is not there: a run, a view. Ends the process with exit_usage.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct ScreenshotRequest {
  std::filesystem::path database;
  std::string view;
  std::filesystem::path out;
  int width = 1600;
  int height = 900;
  double scale = 1;
  bool dark = true;
};

// The window's two ways in; null in a build without the desktop. Both return an exit status and may throw.
struct Desktop {
  int (*open)(const std::filesystem::path& database) = nullptr;
  int (*screenshot)(const ScreenshotRequest& request) = nullptr;
};

// Everything that `main` does. Catches every exception and turns it into a sentence on stderr and an exit status.
int run_command_line(int argc, char** argv, const Desktop& desktop);

}  // namespace stepladder
