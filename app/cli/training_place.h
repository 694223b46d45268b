// The place where a command that trains keeps its runs: the user's database, a folder of journals (--journal), or both.
#pragma once

#include <filesystem>

#include "app/cli/subcommand.h"
#include "app/session/session.h"

namespace stepladder {

// With --journal and without --db, the database is a temporary file on this machine (TMPDIR, else /tmp), since SQLite's
// log doesn't work on cluster file systems; checkpoints are in the folder of journals. The file is removed once the
// journals have everything.
class TrainingPlace {
 public:
  explicit TrainingPlace(const CommonOptions& common);  // throws StorageError

  // Says where the temporary database is kept, if runs were begun and `done` was not called.
  ~TrainingPlace();
  TrainingPlace(const TrainingPlace&) = delete;
  TrainingPlace& operator=(const TrainingPlace&) = delete;

  const std::filesystem::path& database() const { return database_; }
  RunFolders folders() const { return folders_; }
  bool is_temporary() const { return !temporary_.empty(); }

  // Prepares to continue what is in the journals: reads them into the temporary database, as its own runs. Does nothing
  // with the user's database, which has the runs. Waits up to a minute for a process on another machine that may still
  // train them. Throws UsageError if one does, or if there are no journals.
  void ingest_journals();

  void begun() { begun_ = true; }  // runs have been queued
  void done() { done_ = true; }    // the journals have all of their runs

 private:
  std::filesystem::path database_;
  std::filesystem::path temporary_;  // a folder; empty: the database is the user's
  RunFolders folders_;
  bool begun_ = false;
  bool done_ = false;
};

// --journal, of the commands that train.
void add_journal(CLI::App& command, CommonOptions& common);

}  // namespace stepladder
