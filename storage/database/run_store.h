// Runs, ladders and steps in one SQLite file (docs/database.md describes every table).
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/analysis/overview.h"
#include "storage/analysis/summary.h"
#include "storage/database/curation.h"
#include "storage/errors.h"
#include "storage/records.h"

namespace stepladder {

class Transaction;

struct RunAndSummary {
  Run run;
  Summary summary;
};

// One connection to one file. Used by one thread at a time; several processes and threads may each have their own (WAL,
// with a busy timeout). Every verb may block on the disk. Every verb throws StorageError.
class RunStore {
 public:
  enum class Mode { read_write, read_only };

  // read_write makes the file and its folder where they are missing and brings an older file up to date,
  // in one transaction per migration. A file that cannot be written opens read_only only if asked to.
  static RunStore open(const std::filesystem::path& file, Mode mode = Mode::read_write);
  static RunStore in_memory();  // gone with this object
  RunStore(RunStore&&) noexcept;
  RunStore& operator=(RunStore&&) noexcept;
  ~RunStore();

  // `id` of the argument is ignored; the new one is returned. A run is owned by this process until it has ended.
  // Where created_at is missing, it becomes now.
  LadderId create_ladder(const Ladder& ladder);
  RunId create_run(const Run& run);

  // A run that is over waits for its turn once more, owned by this process, to do `planned_steps` in all.
  void queue_again(RunId run, std::int64_t planned_steps);

  // Writes events in one transaction: all or none. Steps of one run may come in any order; a step that
  // is there already is kept, and the newer one counts.
  void apply(std::span<const RunEvent> events);

  // A run and its steps in one transaction, for runs that are already over (examples, imports); its ladder, where it
  // has one, is made first. `run` of the steps is ignored, a status that says otherwise becomes `finished`.
  RunId insert_finished(Run run, std::span<const StepRecord> steps);

  // For runs that are over but whose steps come piece by piece (imports): make the run with create_run, append, and say
  // with update_run what has become known meanwhile. `run` of the steps is ignored. To be called in one transaction.
  void append_steps(RunId run, std::span<const StepRecord> steps);

  // Writes everything that `run` says but its owner; its summary is made anew when it is asked for.
  void update_run(const Run& run);

  // Everything that is written through the store while this lives, or nothing where it goes without commit(). Not to
  // outlive the store.
  class Batch {
   public:
    explicit Batch(RunStore& store);
    ~Batch();
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;
    void commit();

   private:
    std::unique_ptr<Transaction> transaction_;
  };

  // Everything that `work` writes through this store, or nothing where it throws.
  void in_one_transaction(const std::function<void()>& work);

  // Runs in the bin, and ladders whose runs are all there, are in no list; run() finds them.
  std::vector<Ladder> ladders();  // oldest first
  std::vector<Run> runs();        // oldest first
  std::optional<Run> run(RunId id);
  Run existing_run(RunId id);                 // StorageError where another process has deleted it for good
  std::vector<Run> runs_of(LadderId ladder);  // by rung, then repeat
  Series series(RunId id);
  // The same steps with everything that was recorded of them: wall clock and parts too.
  std::vector<StepRecord> step_records(RunId id);
  Series series(RunId id, std::int64_t first_step, std::int64_t last_step);  // with both, read by the index alone

  // About `most` steps that stand for a longer run: the warm-up and, evenly spread over the rest, blocks of consecutive
  // ones, at the same places in all runs. Medians, their intervals and mean differences can be taken from it, extremes
  // and sums cannot. All steps where there are no more.
  Series excerpt(RunId id, std::int64_t most);

  // A quantity of a run of any length in at most a few thousand buckets, a chunk that the file keeps; the values
  // themselves where these are few. Made from all steps where it is missing, which a run's end and an import see to.
  Overview overview(RunId id, Quantity quantity);

  // The same within these steps, fine enough for so many columns of pixels: from the coarsest level that has a bucket
  // for every two, and the values as they were recorded where there are fewer than 32 to those.
  Overview overview(RunId id, Quantity quantity, std::int64_t first_step, std::int64_t last_step, std::size_t columns);

  // From the cache where the run is over, else computed from its steps. Never writes on a read_only store.
  Summary summary(const Run& run);
  std::vector<RunAndSummary> runs_with_summaries();  // oldest first; one query where every summary is cached

  std::vector<SystemMetrics> system_metrics(RunId id);  // in the order of time
  std::vector<TextSample> samples(RunId id);            // in the order of steps
  // What the run's program has printed, where it was watched: the last `most` bytes, and up to a piece more.
  std::string console(RunId id, std::size_t most = 1 << 20);
  StepProfile profile(RunId id);  // the most expensive operator first
  // What a step after the warm-up took, part by part; `missing` where none of the last thousand steps says.
  StepParts mean_parts(const Run& run, std::int64_t warmup_steps);

  // What users made of their runs; a run that nothing was said of is not in the map.
  std::map<RunId, Curation> curations();
  void curate(RunId run, const Curation& curation);
  void rename_run(RunId run, const std::string& name);
  void rename_ladder(LadderId ladder, const std::string& name);

  // Takes runs that have been in the bin since before `deleted_before` out of the file for good, with everything that
  // hangs on them, and returns them; one whose checkpoint a waiting fork is to start from stays. What lies beside the
  // file is the caller's to remove (app/bin.h): no later run gets one of their numbers.
  std::vector<RunId> empty_bin(double deleted_before);

  // Asks the process that owns a run to do something with it, and what other processes ask of this one's runs (each
  // request is taken once).
  void request(RunId run, RunRequest verb);
  std::vector<std::pair<RunId, RunRequest>> take_requests();

  // Closes runs (queued or running) whose owner is a process that lives no more as `interrupted`, at their last step.
  // Returns how many. Runs of other living processes are left alone.
  int close_dead_runs();

  // Small facts about the file itself, e.g. that the example was added once.
  std::optional<std::string> setting(const std::string& key);
  void set_setting(const std::string& key, const std::string& value);

  std::string integrity_check();  // "ok", or what SQLite found
  const std::filesystem::path& file() const;
  bool read_only() const;

 private:
  struct Impl;
  explicit RunStore(std::unique_ptr<Impl> impl);
  void refresh(RunId id);
  std::unique_ptr<Impl> impl_;
};

// `--db`, else STEPLADDER_DB, else $XDG_DATA_HOME/stepladder/stepladder.db, else the same under ~/.local/share.
std::filesystem::path default_database_file();

}  // namespace stepladder
