// Imports files and folders of other programs' logs into a database: finds the files, reads them, and gives each run
// its place in a ladder. Prints nothing; the window and the command line show the outcome.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "storage/analysis/file_grouping.h"
#include "storage/database/run_store.h"
#include "storage/importers/importer.h"

namespace stepladder {

struct ImportRequest {
  std::vector<std::string> paths;  // files, folders, "-" for standard input
  std::string text;                // pasted text, read if there are no paths
  ImportOptions options;
  std::function<bool()> interrupted = [] { return false; };  // asked between pieces of input
  std::function<void(const std::string& file)> begins;       // called before each file or store; may be empty
};

struct ImportNote {
  std::string file;
  std::int64_t line = 0;  // from 1; 0: the whole file
  std::string text;
};

// Why the files of one folder became repeats of one rung, or rungs.
struct ImportGrouping {
  std::string folder;
  std::size_t files = 0;  // those with one run each; at least 2
  FileGrouping decision;
  bool asked = false;  // the user decided, not the evidence
};

struct ImportOutcome {
  std::vector<Run> runs;  // as stored
  std::vector<ImportNote> notes;
  std::vector<ImportGrouping> groupings;
  std::vector<std::string> formats;   // ids of the importers that read something, each once
  std::vector<std::string> failures;  // a sentence for each file that was named and could not be imported
  bool interrupted = false;           // nothing of the file that was being read is kept
};

// "seeds: 3 files are repeats of one rung: the files name no difference; ..."
std::string grouping_text(const ImportGrouping& grouping);

// Imports each file in one transaction, whole or not at all; the places in a ladder follow in one transaction for each
// folder. `store` is called when the first run is found, so that an import that fails doesn't even create a file.
// Blocks. Throws StorageError.
ImportOutcome import_into(const std::function<RunStore&()>& store, const ImportRequest& request);

}  // namespace stepladder
