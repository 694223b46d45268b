// Colour is for a terminal without NO_COLOR (no-color.org). The pager is chosen as git chooses it: $STEPLADDER_PAGER,
// $PAGER, less; "cat" or nothing means none. It starts only after the command has printed everything, so a short output
// never meets it.
#include "app/cli/terminal/output_options.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <set>

#include "app/cli/help/arguments.h"
#include "app/cli/subcommand.h"
#include "app/cli/table.h"
#include "app/text/terminal_text.h"

namespace stepladder {
namespace {

ProgressStyle chosen_style = ProgressStyle::none;
bool holds_output = false;

// Commands that print what is there, and end.
const std::set<std::string>& paged_commands() {
  static const std::set<std::string> commands = {
      "runs",         "show",         "check",        "compare",      "stages",         "bin",         "operators",
      "mfu",          "help",         "ladders",      "ladder show",  "sweep show",     "record diff", "record source",
      "record judge", "profile list", "profile show", "profile diff", "profile passes", "predict",     "skill"};
  return commands;
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

bool terminal_is_dumb() {
  const char* term = std::getenv("TERM");
  return !term || !*term || std::string(term) == "dumb";
}

std::string pager() {
  for (const char* variable : {"STEPLADDER_PAGER", "PAGER"})
    if (const char* named = std::getenv(variable)) return std::string(named) == "cat" ? "" : named;
  return "less";
}

winsize terminal_size(int stream = STDOUT_FILENO) {
  winsize size = {};
  if (!::isatty(stream) || ::ioctl(stream, TIOCGWINSZ, &size) != 0) return {};
  return size;
}

// False if no pager could be started.
bool page(const std::string& text, const std::string& command) {
  ::setenv("LESS", "FRX", 0);
  std::FILE* pipe = ::popen(command.c_str(), "w");
  if (!pipe) return false;
  std::fwrite(text.data(), 1, text.size(), pipe);
  const int status = ::pclose(pipe);
  return !(WIFEXITED(status) && WEXITSTATUS(status) == 127);  // the shell found no such command
}

}  // namespace

std::size_t terminal_columns() {
  return terminal_size().ws_col;
}

std::size_t message_columns() {
  return terminal_size(STDERR_FILENO).ws_col;
}

void add_output_options(CLI::App& app, OutputOptions& options) {
  app.add_option("--color,--colour", options.colour, "Colour of verdicts, trust and flags; NO_COLOR turns it off")
      ->check(one_of({"auto", "always", "never"}));
  app.add_option("--progress", options.progress,
                 "Progress on stderr; auto: a line that is rewritten on a terminal, else one every 30 s")
      ->check(one_of({"auto", "json", "never"}));
  app.add_flag("--no-pager", options.no_pager, "Don't show long output in $PAGER (default: less) on a terminal");
}

void begin_output(const OutputOptions& options, const CLI::App& command) {
  const bool on_terminal = ::isatty(STDOUT_FILENO) == 1;
  show_colour(options.colour == "always" ||
              (options.colour == "auto" && on_terminal && !is_set("NO_COLOR") && !terminal_is_dumb()));
  const bool rewrites = on_terminal && ::isatty(STDERR_FILENO) == 1;
  chosen_style = options.progress == "json"    ? ProgressStyle::json
                 : options.progress == "never" ? ProgressStyle::none
                 : rewrites                    ? ProgressStyle::line
                                               : ProgressStyle::periodic;
  holds_output = on_terminal && ::isatty(STDIN_FILENO) == 1 && !options.no_pager && !terminal_is_dumb() &&
                 !pager().empty() && terminal_size().ws_row > 0 && paged_commands().contains(command_path(command));
  if (holds_output) hold_output();
}

void end_output() {
  if (!std::exchange(holds_output, false)) return;
  std::cout.flush();
  const std::string text = take_held_output();
  const auto lines = std::ranges::count(text, '\n');
  if (lines >= terminal_size().ws_row && page(text, pager())) return;
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

ProgressStyle progress_style() {
  return chosen_style;
}

}  // namespace stepladder
