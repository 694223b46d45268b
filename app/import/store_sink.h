// Writes the runs that an importer reads from one file or store to the database, in one transaction.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/import/import.h"

namespace stepladder {

// One thread. The transaction begins with the first run (a table without steps has only notes, and needs no database)
// and is rolled back without commit().
class StoreSink : public ImportSink {
 public:
  // `shown` names the file in notes; `path` is empty for standard input and pasted text. References outlive the sink.
  StoreSink(const std::function<RunStore&()>& store, const ImportOptions& options, std::string shown,
            std::filesystem::path path)
      : open_store_(store), options_(options), shown_(std::move(shown)), path_(std::move(path)) {}

  void begin_run(const Run& run) override;
  void step(const StepRecord& record) override;
  void end_run(const Run& run) override;
  void ladder(const Ladder& ladder, std::span<const int> rungs) override;
  void note(std::int64_t line, std::string text) override;

  // `source_hash`: of the source code in the file; empty if it has none.
  void commit(ImportOutcome& outcome, const std::string& source_hash);

 private:
  std::string stem() const;
  void complete(Run& run) const;
  void write_steps();

  const std::function<RunStore&()>& open_store_;
  const ImportOptions& options_;
  std::string shown_;
  std::filesystem::path path_;
  RunStore* store_ = nullptr;
  std::optional<RunStore::Batch> transaction_;
  const double imported_at_ = unix_now();
  std::vector<Run> runs_;
  std::vector<StepRecord> steps_;
  std::vector<ImportNote> notes_;
};

}  // namespace stepladder
