// Runs, ladders and steps in one SQLite file (docs/database.md describes every table).
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/analysis/overview.h"
#include "storage/analysis/summary.h"
#include "storage/database/bin.h"
#include "storage/database/curation.h"
#include "storage/database/following/follow_store.h"
#include "storage/database/machine_store.h"
#include "storage/database/metrics/metric_store.h"
#include "storage/database/missing_steps.h"
#include "storage/database/process_store.h"
#include "storage/database/recordings.h"
#include "storage/database/settings.h"
#include "storage/database/traces/trace_store.h"
#include "storage/database/tries/try_store.h"
#include "storage/database/upkeep.h"
#include "storage/errors.h"
#include "storage/records.h"

namespace stepladder {

// The amount of a run that is in the file. A step that was written twice has two records.
struct RecordedSteps {
  std::int64_t records = 0;
  std::int64_t last_step = 0;
};

// One connection to one file. Used by one thread at a time; several processes and threads may each have their own (WAL,
// waiting for each other). Every verb may block on the disk. Every verb throws StorageError.
// Both are true of its parts, too.
class RunStore {
 public:
  enum class Mode { read_write, read_only };

  // read_write creates a missing file and its folder and brings an older file up to date, after a backup (schema.h):
  // throws MigrationError if that isn't possible now. A file that cannot be written must be opened as read_only.
  static RunStore open(const std::filesystem::path& file, Mode mode = Mode::read_write);
  static RunStore in_memory();  // gone with this object
  RunStore(RunStore&&) noexcept;
  RunStore& operator=(RunStore&&) noexcept;
  ~RunStore();

  // --- Runs and ladders

  // Lists leave out runs in the bin, and ladders whose runs are all there; run() finds them. A hidden run (see
  // hidden_runs.h) is in no list, and run() doesn't find it.
  std::vector<Ladder> ladders();  // oldest first
  std::vector<Run> runs();        // oldest first
  std::optional<Run> run(RunId id);
  Run existing_run(RunId id);                 // throws StorageError if another process has deleted it
  std::vector<Run> runs_of(LadderId ladder);  // by rung, then repeat

  // Ignore the argument's `id` and return the new one. A run is owned by run_owner() (process.h). A missing
  // created_at becomes now.
  LadderId create_ladder(const Ladder& ladder);
  RunId create_run(const Run& run);

  RecordedSteps recorded_steps(RunId id);
  MissingSteps missing_steps(RunId id, std::int64_t first, std::int64_t last);

  // Writes all of `run` but its owner; its summary is computed anew when it is asked for.
  void update_run(const Run& run);

  void rename_run(RunId run, const std::string& name);
  void rename_ladder(LadderId ladder, const std::string& name);

  // --- Writing steps

  // Writes events in one transaction: all or none. A run's steps may arrive in any order; a step that exists already is
  // kept, and the newer one counts. Returns the runs that aren't in the file: their events, and only theirs, are not
  // written. Once the transaction is committed nothing throws. A launched run that ends as finished although the file
  // lacks some of its steps is stored as failed, with their numbers as the reason.
  std::vector<RunId> apply(std::span<const RunEvent> events);

  // Writes a run that is already over (an example, an import) and its steps in one transaction. Its ladder, if any,
  // must exist. Ignores the steps' `run`; a status that isn't over becomes `finished`.
  RunId insert_finished(Run run, std::span<const StepRecord> steps);

  void append_steps(RunId run, std::span<const StepRecord> steps);  // ignores the steps' `run`

  // Calls `piece`, which writes through this store for a few milliseconds, until it returns false. Others can write
  // every 50 ms meanwhile. If a piece throws, those of the last 50 ms may be undone.
  void in_slices(const std::function<bool()>& piece);

  // Writes everything that `work` writes through this store, or nothing if it throws.
  void in_one_transaction(const std::function<void()>& work);

  // --- Reading steps

  Series series(RunId id);
  Series series(RunId id, std::int64_t first_step, std::int64_t last_step);  // both included; read by the index alone

  // Passes the same steps, with everything recorded (wall clock and parts too), to `use` in order, some thousands at a
  // time, so that a run of any length takes little memory. Holds no read lock while `use` runs.
  using UseSteps = std::function<void(std::span<const StepRecord>)>;
  void for_steps(RunId id, const UseSteps& use);

  // About `most` steps that represent a longer run: the warm-up and, evenly spread over the rest, blocks of consecutive
  // steps, at the same places in all runs. Good for medians, their intervals and mean differences, not for extremes and
  // sums. A run of at most that many steps is returned whole.
  Series excerpt(RunId id, std::int64_t most);

  // --- Derived from steps, and cached by the file

  // A quantity (a field of the steps, or a metric) of a run of any length in at most a few thousand buckets, which the
  // file caches; the values themselves if they are few. Computed from all steps if missing; a run's end and an import
  // compute it.
  Overview overview(RunId id, Quantity quantity);

  // The same within these steps, fine enough for `columns` of pixels: from the coarsest level that has a bucket for
  // every two columns, or the recorded values if two columns have fewer than 32.
  Overview overview(RunId id, Quantity quantity, std::int64_t first_step, std::int64_t last_step, std::size_t columns);

  // The summary from the cache if the run is over, else computed from its steps. Never writes to a read_only store.
  Summary summary(const Run& run);
  std::vector<Summary> summaries(std::span<const Run> runs);  // many at once, faster than one by one
  std::vector<RunAndSummary> runs_with_summaries();           // oldest first; one query if every summary is cached
  std::vector<RunAndSummary> runs_with_kept_summaries();      // the same, always one query; without steps where none is

  // --- Parts with verbs of their own

  MetricStore& metrics() { return parts_->metrics; }
  Recordings& recordings() { return parts_->recordings; }  // what runs recorded besides: output, samples, operators ...
  TraceStore& traces() { return parts_->traces; }
  CurationStore& curation() { return parts_->curation; }     // users' marks on their runs
  HiddenRuns& hidden_runs() { return parts_->hidden_runs; }  // imports that are being written
  Bin& bin() { return parts_->bin; }                         // permanent deletion
  ProcessStore& processes() { return parts_->processes; }    // that share the file, and their queues
  FollowStore& following() { return parts_->following; }
  ViewStore& views() { return parts_->views; }           // of the window, saved by name
  MachineStore& machines() { return parts_->machines; }  // ssh hosts that runs are launched on
  TryStore& tries() { return parts_->tries; }            // series of changes that were judged one after the other
  ProjectOrders& orders() { return parts_->orders; }     // what this user has asked for here; only this makes us act
  Settings& settings() { return parts_->settings; }
  Upkeep& upkeep() { return parts_->upkeep; }  // copies, size and soundness of the file

  const std::filesystem::path& file() const;
  bool read_only() const;

 private:
  struct Impl;
  explicit RunStore(std::unique_ptr<Impl> impl);
  Run marked(Run run);  // with Run::is_claimed
  struct Parts {
    Database& database;
    Derived& derived;
    Settings settings{database};
    Upkeep upkeep{database};
    CurationStore curation{database};
    HiddenRuns hidden_runs{database};
    Bin bin{database};
    MetricStore metrics{database, derived};
    TraceStore traces{database};
    Recordings recordings{database, traces};
    ProcessStore processes{database, derived, metrics, bin};
    FollowStore following{database, derived};
    ViewStore views{database};
    ProjectOrders orders{database};
    OrderBook launches{};  // this user's, of whatever project
    MachineStore machines{database, orders};
    TryStore tries{database};
  };
  std::unique_ptr<Impl> impl_;
  Parts* parts_;  // of impl_
};

// `--db`, else STEPLADDER_DB, else $XDG_DATA_HOME/stepladder/stepladder.db, else the same under ~/.local/share.
std::filesystem::path default_database_file();

}  // namespace stepladder
