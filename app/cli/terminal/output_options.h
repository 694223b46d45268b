// How all commands print: colour, pager, progress. Chosen once, after the command line is parsed.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace stepladder {

struct OutputOptions {
  std::string colour = "auto", progress = "auto";
  bool no_pager = false;
};

enum class ProgressStyle { line, periodic, json, none };

void add_output_options(CLI::App& app, OutputOptions& options);

// `command`: the one that was parsed. Output of commands that only print is held back, for the pager.
void begin_output(const OutputOptions& options, const CLI::App& command);

// Shows what was held back, through the pager if it is longer than the terminal. Call last, before flushing.
void end_output();

// How progress is shown on stderr: a line that is rewritten, one every half minute, a JSON object a line, or nothing.
ProgressStyle progress_style();

}  // namespace stepladder
