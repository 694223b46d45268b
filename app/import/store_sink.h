// Writes the runs that an importer reads from one file or store to the database, in slices and hidden.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/import/import.h"

namespace stepladder {

// One thread. Opens the database for the first run: a table without steps has only notes, and needs none. Keeps some
// thousand steps and some hundred runs in memory before it writes them, and holds no lock between two calls. Without
// finish(), the destructor removes everything.
class StoreSink : public ImportSink {
 public:
  // `shown` names the file in notes; `path` is empty for standard input and pasted text. References outlive the sink.
  StoreSink(const std::function<RunStore&()>& store, const ImportOptions& options, std::string shown,
            std::filesystem::path path)
      : open_store_(store), options_(options), shown_(std::move(shown)), path_(std::move(path)) {}
  ~StoreSink() override;

  void begin_run(const Run& run) override;
  void step(const StepRecord& record) override;
  void metric(const Metric& metric, std::span<const MetricPoint> points) override;
  void machine(const SystemMetrics& sample) override;
  void end_run(const Run& run) override;
  void ladder(const Ladder& ladder, std::span<const int> rungs) override;
  void tries(StoredTries&& tries) override;
  void view(const std::string& name, const std::string& content) override { views_.emplace_back(name, content); }
  void passes(const StoredPasses& passes) override;
  void published(std::string_view tables) override { published_ += tables; }
  void note(std::int64_t line, std::string text) override;

  // Writes the rest. The runs stay hidden until the caller shows them (RunStore::show). `source_hash`: of the source
  // code in the file; empty if it has none. `content_hash`: of the whole file (contents.h).
  void finish(ImportOutcome& outcome, const std::string& source_hash, const std::string& content_hash);

 private:
  struct LoggedMetric {
    Metric metric;
    std::vector<MetricPoint> points;
    std::size_t written = 0;  // of these
  };

  std::string stem() const;
  const Run* run_numbered(RunId number) const;  // by the file; null: none
  void add_settings_in_name();
  void add_tries(ImportOutcome& outcome);
  void add_views(ImportOutcome& outcome);
  void note_overruled(const Run& read);
  void complete(Run& run) const;
  void keep_texts_short(Run& run);  // with a note for each that was cut
  bool write_next();                // the next few rows, for RunStore::in_slices
  void write_next_points();
  void write();

  const std::function<RunStore&()>& open_store_;
  const ImportOptions& options_;
  std::string shown_;
  std::filesystem::path path_;
  RunStore* store_ = nullptr;
  const double imported_at_ = unix_now();
  std::vector<Run> runs_;
  std::size_t created_ = 0;             // how many of them are in the file; these have their ids
  std::vector<std::size_t> changed_;    // of those, the ones whose facts have changed since
  std::vector<StepRecord> steps_;       // not yet written; their `run` is an index in runs_
  std::size_t written_steps_ = 0;       // of these
  std::vector<SystemMetrics> machine_;  // not yet written, likewise
  std::size_t written_machine_ = 0;     // of these
  std::map<std::pair<std::size_t, std::string>, LoggedMetric> metrics_;  // not yet written, by place in runs_ and name
  std::size_t points_in_memory_ = 0;
  std::vector<std::pair<std::string, std::string>> views_;  // name and content, as the file has them
  std::vector<StoredTries> tries_;                          // with the file's numbers of runs
  std::map<RunId, std::size_t> places_;                     // in runs_, by the file's numbers
  std::vector<StoredPasses> passes_;
  std::string published_;
  std::vector<ImportNote> notes_;
  bool finished_ = false;
};

}  // namespace stepladder
