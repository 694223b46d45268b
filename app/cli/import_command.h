// `stepladder import`: files and folders of other programs' logs become runs in the database.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "storage/database/run_store.h"
#include "storage/importers/importer.h"

namespace stepladder {

struct ImportRequest {
  std::filesystem::path database;
  std::vector<std::string> paths;  // files, folders, "-" for standard input
  std::string text;                // where there are no paths: what was pasted
  ImportOptions options;
  bool json = false;
  std::function<bool()> interrupted = [] { return false; };  // asked between pieces of input
  std::function<void(const std::string& file)> begins;       // told before each file or store; may be empty
};

struct ImportNote {
  std::string file;
  std::int64_t line = 0;  // from 1; 0: the whole file
  std::string text;
};

struct ImportedRun {
  Run run;           // as it stands in the store
  std::string unit;  // of the throughput that was printed (ImportSink::end_run)
};

struct ImportOutcome {
  std::vector<ImportedRun> runs;
  std::vector<ImportNote> notes;
  std::vector<std::string> formats;   // ids of the importers that read something, each once
  std::vector<std::string> failures;  // a sentence for each file that was named and could not be imported
  bool interrupted = false;           // the file that was being read left nothing
};

// Imports what can be, each file in one transaction: whole or not at all. `store` is asked for when the first run
// comes, so that an import that fails leaves not even an empty file behind. Throws StorageError.
ImportOutcome import_into(const std::function<RunStore&()>& store, const ImportRequest& request);

// The same into the request's database. Runs go to stdout, notes and what failed to stderr (notes to stdout too with
// --json). The exit status: exit_failed where a file that was named could not be imported, or a folder held nothing.
int import_paths(const ImportRequest& request);

// A file or standard input, read in pieces of 256 KiB.
class FileInput : public ImportInput {
 public:
  // Throws ImportError where it cannot be opened. The second form reads what `descriptor` gives, and does not close it.
  explicit FileInput(const std::filesystem::path& path);
  explicit FileInput(int descriptor);
  ~FileInput() override;
  FileInput(const FileInput&) = delete;
  FileInput& operator=(const FileInput&) = delete;

  std::string_view head() override;
  std::string_view next() override;
  const std::filesystem::path& path() const override { return path_; }

 private:
  std::string_view read_piece(std::size_t least);

  std::filesystem::path path_;
  int descriptor_;
  bool owned_;
  std::vector<char> buffer_;
  std::size_t filled_ = 0;
  std::string head_;
  bool head_read_ = false;
  bool first_piece_waits_ = false;  // what the head was taken from is in buffer_ and was not given by next() yet
};

}  // namespace stepladder
