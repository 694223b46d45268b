// `stepladder watch`: another program's output is shown untouched while its steps are kept, live.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "storage/importers/importer.h"

namespace stepladder {

struct WatchRequest {
  std::filesystem::path database;
  std::string name;                  // of the run; empty: the program's or the file's
  std::vector<std::string> command;  // empty: standard input, or `follow`
  std::filesystem::path follow;      // a growing file
  ImportOptions options;
};

// With a command: its exit status (128 + N where signal N killed it), once it has ended; signals that come meanwhile
// (SIGINT, SIGTERM, SIGHUP, SIGQUIT) are passed on to it. Without: exit_done at the end of the input, or when a
// followed file's watcher is interrupted. Where the database fails the program goes on, and a sentence says so. Takes
// over those signals for the rest of the process.
int watch(const WatchRequest& request);

}  // namespace stepladder
