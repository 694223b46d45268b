// Imports files and folders of other programs' logs into a database: finds the files, reads them, and gives each run
// its place in a ladder. Prints nothing; the window and the command line show the outcome.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/import/contents.h"
#include "storage/analysis/file_grouping.h"
#include "storage/analysis/pass_times.h"
#include "storage/database/run_store.h"
#include "storage/importers/importer.h"
#include "storage/try_records.h"

namespace stepladder {

// The user's decisions about one file with one run; by default the evidence decides.
struct FileChoice {
  enum class Role { detect, rung, repeat, apart };  // repeat: of the rung before it; apart: in no ladder

  Role role = Role::detect;
  int order = 0;                     // among the files of its folder; equal ones are in the order of their names
  std::string name;                  // of its rung or, apart, of the run; empty: as read
  std::int64_t tokens_per_step = 0;  // 0: as ImportOptions

  bool operator==(const FileChoice&) const = default;
};
using FileChoices = std::map<std::string, FileChoice>;  // by Run::source_path

struct ImportRequest {
  std::vector<std::string> paths;         // files, folders, "-" for standard input
  ImportInput* standard_input = nullptr;  // opened already, and not owned; null: it is opened when its turn comes
  std::string text;                       // pasted text, read if there are no paths
  ImportOptions options;
  FileChoices choices;
  ImportedContents in_project;                               // these are skipped
  std::function<bool()> interrupted = [] { return false; };  // asked between pieces of input
  std::function<void(const std::string& file)> begins;       // called before each file or store; may be empty
};

struct ImportNote {
  std::string file;
  std::int64_t line = 0;  // from 1; 0: the whole file
  std::string text;
};

// The reason why the files of one folder became repeats of one rung, or rungs.
struct ImportGrouping {
  std::string folder;
  std::size_t files = 0;  // those with one run each; at least 2
  FileGrouping decision;
  bool asked = false;  // the user decided, not the evidence
};

// A file or store that was skipped, since the project has its runs.
struct SkippedImport {
  std::string file;
  std::vector<RunId> runs;
};

struct ImportOutcome {
  std::vector<Run> runs;                                   // as stored
  std::vector<std::pair<std::string, std::string>> views;  // of projects: name and content, as stored
  std::vector<StoredTries> tries;                          // of projects, until they are stored
  std::vector<StoredPasses> passes;                        // timings of scripts, as stored
  std::string published;                                   // tables of published utilisation, until they are stored
  bool has_published = false;
  std::vector<ImportNote> notes;
  std::vector<ImportGrouping> groupings;
  std::vector<SkippedImport> skipped;
  std::vector<std::string> traces;    // profilers' traces in the folders: import_trace's to read
  std::vector<std::string> formats;   // ids of the importers that read something, each once
  std::vector<std::string> failures;  // a sentence for each file that was named and could not be imported
  bool interrupted = false;           // nothing of the path that was being read is kept
  std::exception_ptr error;           // ended the import early; nothing of its path is kept
  std::size_t paths_done = 0;         // the request's first paths, which were imported or are among the failures
};

std::string skipped_text(const SkippedImport& skipped);  // "a.log is in the project already (runs 3 - 5)"

// "seeds: 3 files are repeats of one rung: the files name no difference; ..."
std::string grouping_text(const ImportGrouping& grouping);

// Imports each file whole or not at all. All runs of a path appear at once, with their ladder, when it has been read;
// until then they are hidden, and others can write meanwhile. `store` is called when the first run is found, so that an
// import that fails doesn't even create a file. Blocks, and lowers the calling thread's priority for good, so that a
// training on the same cores isn't slowed.
ImportOutcome import_into(const std::function<RunStore&()>& store, const ImportRequest& request);

}  // namespace stepladder
