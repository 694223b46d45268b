// The content of the Import view: files are read into memory for a preview, then into the database.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/import/import.h"
#include "app/job.h"
#include "storage/analysis/summary.h"
#include "storage/importers/importer.h"
#include "storage/records.h"

namespace stepladder {

struct ImportQuestion {
  std::vector<std::string> paths;
  std::string text;  // instead of paths
  ImportOptions options;
  FileChoices choices;
  bool again = false;     // also what is in the project already
  bool opens_it = false;  // its ladder or tries, once it is in the project
};

// The result of an import, or of its preview.
struct ImportPreview {
  enum class State { nothing, reading, understood, keeping, kept };
  State state = State::nothing;
  int number = 0;        // of this reading; with a new number panels derive their data again
  JobProgress progress;  // the file that is being read, or was last
  ImportQuestion asked;
  struct PreviewRun {
    Run run;
    Summary summary;
    Series series;
    std::vector<double> steps;
  };
  std::vector<PreviewRun> runs;
  std::vector<ImportNote> notes;
  std::vector<ImportGrouping> groupings;
  std::vector<std::string> formats;  // ids of the importers that read something
  std::vector<std::string> failures;
  std::string not_stored;      // why the project has no more than `runs`: a full disk, a lock; empty: it took all
  std::size_t paths_done = 0;  // the first of `asked`; then they were all that was read
  std::vector<SkippedImport> skipped;  // the project has them already
  std::vector<std::string> traces;     // of profilers, in the folders: Profile reads them
  struct ReadTries {                   // a series of tries among the runs (docs/try.md)
    std::int64_t tries = 0, kept = 0, runs = 0;
  };
  std::vector<ReadTries> tries;
  std::int64_t tables = 0;                // of call times or of published utilisation, which are no runs
  std::string undo;                       // the name of the change that undoes the import; empty: nothing does
  std::vector<std::string> source_lines;  // of each note: its line of the file; empty if unknown

  bool is_reading() const { return state == State::reading || state == State::keeping; }
};

// "21 runs and 9 traces", "213 runs of 100 tries", of what the project gets.
std::string contents_text(const ImportPreview& import);

// Reads the files into memory, or with `keeps` into `database`. Skips what `database` has already, unless asked
// otherwise, through a connection of its own; a preview needs no database. An interrupted import keeps nothing of the
// path that it was reading. Blocks; any thread. Throws nothing: what can't be read is among the failures.
ImportPreview read_import(const ImportQuestion& asked, const std::filesystem::path& database, bool keeps,
                          JobControl& job);

}  // namespace stepladder
