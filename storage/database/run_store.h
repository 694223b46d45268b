// Runs, ladders and steps in one SQLite file (docs/database.md describes every table).
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "storage/analysis/overview.h"
#include "storage/analysis/summary.h"
#include "storage/database/backup.h"
#include "storage/database/curation.h"
#include "storage/database/following/follow_store.h"
#include "storage/database/machine_store.h"
#include "storage/database/metrics/metric_store.h"
#include "storage/database/missing_steps.h"
#include "storage/database/share.h"
#include "storage/database/traces/trace_store.h"
#include "storage/database/view_store.h"
#include "storage/errors.h"
#include "storage/records.h"

namespace stepladder {

struct ProcessIdentity;

// How much of a run is in the file. A step that was written twice has two records.
struct RecordedSteps {
  std::int64_t records = 0;
  std::int64_t last_step = 0;
};

// A run that a process trains or will train.
struct QueuedRun {
  RunId run = 0;
  bool is_paused = false;
  bool operator==(const QueuedRun&) const = default;
};

// Among the waiting runs; 0: the next one to train.
struct QueuePlace {
  std::size_t place = 0;
};
using RunChange = std::variant<RunRequest, QueuePlace>;

// One connection to one file. Used by one thread at a time; several processes and threads may each have their own (WAL,
// waiting for each other). Every verb may block on the disk. Every verb throws StorageError.
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
  // create_hidden_run) is in no list, and run() doesn't find it.
  std::vector<Ladder> ladders();  // oldest first
  std::vector<Run> runs();        // oldest first
  std::optional<Run> run(RunId id);
  Run existing_run(RunId id);                 // throws StorageError if another process has deleted it
  std::vector<Run> runs_of(LadderId ladder);  // by rung, then repeat

  // Ignore the argument's `id` and return the new one. A run is owned by run_owner() (process.h). A missing
  // created_at becomes now.
  LadderId create_ladder(const Ladder& ladder);
  RunId create_run(const Run& run);

  // Oldest first; also those that are over.
  std::vector<RunId> runs_owned_by(const ProcessIdentity& owner);
  RecordedSteps recorded_steps(RunId id);
  MissingSteps missing_steps(RunId id, std::int64_t first, std::int64_t last);

  // Queues a run that is over again, owned by this process, for `planned_steps` steps in total.
  void queue_again(RunId run, std::int64_t planned_steps);

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

  // For runs that are over but whose rows are too many for one transaction (imports). Such runs are hidden and owned by
  // this process while create_hidden_run, append_steps and update_run write them, in pieces of in_slices; `show` makes
  // them visible, all in one transaction, and `delete_hidden` removes them. If the process exits without either,
  // finish_deletions of a later one removes them.
  RunId create_hidden_run(const Run& run);
  void append_steps(RunId run, std::span<const StepRecord> steps);  // ignores the steps' `run`
  void show(std::span<const RunId> hidden_runs);
  void delete_hidden(std::span<const RunId> hidden_runs);

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

  // From the cache if the run is over, else computed from its steps. Never writes to a read_only store.
  Summary summary(const Run& run);
  std::vector<RunAndSummary> runs_with_summaries();       // oldest first; one query if every summary is cached
  std::vector<RunAndSummary> runs_with_kept_summaries();  // the same, always one query; without steps where none is

  // --- Recorded besides the steps

  MetricStore& metrics();
  FollowStore& following();

  std::vector<SystemMetrics> system_metrics(RunId id);  // in the order of time
  std::vector<TextSample> samples(RunId id);            // in the order of steps
  // The output of a watched program: the last `most` bytes, and up to a piece more.
  std::string console(RunId id, std::size_t most = 1 << 20);
  // The most expensive operator first. Of a run whose operators weren't timed here: that of the newest trace attached
  // to it.
  StepProfile profile(RunId id);
  TraceStore& traces();
  // The mean time of a step's parts after the warm-up; `missing` if none of the last thousand steps has it.
  StepParts mean_parts(const Run& run, std::int64_t warmup_steps);

  // --- Users' marks, and the bin

  // Users' marks on their runs; a run without any is not in the map.
  std::map<RunId, Curation> curations();
  void curate(RunId run, const Curation& curation);

  ViewStore& views();  // of the window, saved by name

  MachineStore& machines();  // ssh hosts that runs are launched on
  ProjectOrders& orders();   // what this user has asked for here; nothing else makes the program act

  // Permanently deletes runs that were put into the bin before `deleted_before`, with everything that belongs to them,
  // and returns them: hides them in one transaction, in which `also` may write something about them, then deletes their
  // rows in slices and gives back their space. If it can't (StorageError), a later call goes on. A
  // run whose checkpoint a queued fork needs stays. The caller removes files beside the database (app/bin.h); no later
  // run gets one of their numbers. Also does what finish_deletions does.
  using NoteRuns = std::function<void(std::span<const Run>)>;
  // Called before each piece of a deletion; false leaves the rest to a later call.
  using KeepDeleting = std::function<bool(std::size_t runs_left)>;
  std::vector<RunId> empty_bin(double deleted_before, const NoteRuns& also = {},
                               const KeepDeleting& keep_deleting = {});

  // Runs that no list shows, since a process was killed while it deleted or imported them. They only take space;
  // deleting the rows of long ones takes minutes, so close_dead_runs only does a moment's part of it.
  std::size_t left_to_delete();
  void finish_deletions(const KeepDeleting& keep_deleting = {});

  // --- Other processes

  // Queued and running ones, whoever owns them: by process, and of each in the order in which they train.
  std::vector<Run> runs_under_way();

  // What `runs_under_way` and `is_paused` tell of this process's runs, the one that trains first. Replaces what was
  // told of them before; runs that are over are left out.
  void tell_queue(std::span<const QueuedRun> queue);
  bool is_paused(RunId run);

  // Whether another connection, of this process or not, has written since the last call. Costs microseconds.
  bool others_have_written();

  // `request` asks the process that owns a run; `take_requests` returns the requests of other processes about runs of
  // this one, each once.
  void request(RunId run, const RunChange& change);
  std::vector<std::pair<RunId, RunChange>> take_requests();

  // Closes queued and running runs of processes that have exited as `interrupted`, at their last step. Returns how
  // many. Leaves runs of other live processes alone. First stores the events that such processes left behind (see
  // left_events.h); what is stored already isn't stored again.
  int close_dead_runs();

  // After close_dead_runs: a sentence for each file of left events that could not be stored, and is kept.
  const std::vector<std::string>& left_behind() const;

  // --- The file

  // Small facts about the file itself, such as that the example was added once.
  std::optional<std::string> setting(const std::string& key);
  void set_setting(const std::string& key, const std::string& value);

  std::string integrity_check();  // "ok", or SQLite's findings and the runs that have lost steps

  // Writes a complete copy of the file's present state to `out`, which must not exist, while others go on writing. It
  // is on the disk when this returns. Returns what the copy holds.
  FileContents back_up(const std::filesystem::path& out);

  // A copy for others, without what share.h names; else as back_up.
  SharedCopy share(const std::filesystem::path& out, const ShareOptions& options);

  const std::filesystem::path& file() const;

  struct Space {
    std::int64_t file_bytes = 0;     // of the database's file alone
    std::int64_t content_bytes = 0;  // what it will have when the log is in it
    std::int64_t free_bytes = 0;     // of these, unused until new rows need them
  };
  Space space();

  // Writes the whole file anew without unused space; from then on deletions make it smaller. Throws StorageError if
  // another connection has it open. Needs as much space again meanwhile.
  void compact();

  void set_patience(std::chrono::milliseconds patience);  // how long a verb waits for other processes' locks; 5 s
  bool read_only() const;

 private:
  struct Impl;
  explicit RunStore(std::unique_ptr<Impl> impl);
  std::map<std::int64_t, std::string> take_in_left_events();
  void delete_hidden_runs(const KeepDeleting& keep_deleting = {});
  void take_over_deletions();
  void refresh(RunId id);  // never throws
  std::unique_ptr<Impl> impl_;
};

// `--db`, else STEPLADDER_DB, else $XDG_DATA_HOME/stepladder/stepladder.db, else the same under ~/.local/share.
std::filesystem::path default_database_file();

}  // namespace stepladder
