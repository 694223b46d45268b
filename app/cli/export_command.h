// `stepladder export`: figures, tables, reports, traces and weights, to a file or to standard output. Needs no display.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace stepladder {

struct ExportRequest {
  std::filesystem::path database;
  std::vector<std::string> runs;  // numbers or names; RUN@STEP for the weights of an older checkpoint
  std::string ladder;             // instead: all runs of a ladder
  std::string format;             // empty: by the ending of `out`
  std::string out;                // "-": standard output, for text
  std::string what;               // which figure; empty: what suits the format
  std::string theme;
  std::string x;
  std::string size;
  bool table = false;

  void add_to(CLI::App& command);
};

// Returns an exit status; throws UsageError, StorageError, DataError.
int export_runs(const ExportRequest& request);

}  // namespace stepladder
