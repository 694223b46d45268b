// Connects an engine, a recorder and a ring of events for the caller that shows the runs. Window and command line
// both use it.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/journal/run_journals.h"
#include "app/session/launched_runs.h"
#include "app/session/speedup_confirmation.h"
#include "engine/engine.h"
#include "engine/files/run_checkpoints.h"
#include "engine/rungs.h"
#include "storage/database/events/event_ring.h"
#include "storage/database/recorder.h"
#include "storage/database/run_store.h"
#include "storage/thread_safety.h"

namespace stepladder {

// A ladder to launch. Without `rungs`: all stages that preserve the loss and that the device supports.
struct LadderRequest {
  std::string name;  // empty: named after model and data
  std::string notes;
  Recipe base;
  std::vector<PlannedRung> rungs;
  Climb climb = Climb::together;
  int repeats = 1;
  std::vector<std::uint64_t> seeds;  // of the repeats; empty: each has its recipe's
  bool interleave = false;           // runs in random order instead of rung after rung
  QuietPatience quiet_patience = {};
};

struct RunSpec {
  std::string name;  // empty: named after model and data
  Recipe base;
  std::vector<std::string> stages;
  std::optional<RunId> fork_of;           // start from a checkpoint of this run
  std::optional<std::int64_t> fork_step;  // without it: the newest checkpoint
  QuietPatience quiet_patience = {};
};

struct LaunchedLadder {
  LadderId ladder = 0;
  std::string name;
  std::vector<RunId> runs;  // in the order in which they will run
  LadderPlan plan;
};

// Folders for the files of a session's runs that aren't in its database.
struct RunFolders {
  std::filesystem::path journals;     // each run's (app/journal/run_journals.h); empty: they get none
  std::filesystem::path checkpoints;  // empty: beside the database
};

// Used by the thread that made it: the UI thread, or `main`. Only the functions that launch runs and the store's own
// functions touch the disk. Functions that take a run throw StorageError if another process has deleted it permanently.
class Session {
 public:
  // Opens the database (throws StorageError), closes runs whose process has exited, and starts the engine and the
  // writer thread. These two call `wake` when a run has started or ended, or when steps begin or end to wait for the
  // disk, but not for every step.
  explicit Session(const std::filesystem::path& database, std::function<void()> wake = {},
                   const TrainerLibrary* library = nullptr, RunFolders folders = {});

  // Stops the running run after its current step and joins the engine thread, then writes all its events and joins the
  // writer thread.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  RunStore& store() {
    owner_.check();
    return store_;
  }

  // Detects the machine's hardware; never blocks (see Engine::probe).
  std::shared_future<DeviceReport> probe() { return engine_.probe(); }

  // Both check recipe and data (RecipeError, DataError), then write the rows and queue the runs.
  LaunchedLadder launch_ladder(const LadderRequest& request, const DeviceReport& report);
  // By this plan (plan_of), such as one that the user has seen; nothing is prepared again.
  LaunchedLadder launch_ladder(const LadderRequest& request, LadderPlan plan);
  RunId launch_run(const RunSpec& request, const DeviceReport& report);

  // Launches each of these runs `times` more by its own recipe, as repeats of its rung if it belongs to a ladder. Their
  // order is random, so that drift affects all rungs alike. Throws RecipeError for a run that was not launched here,
  // since its recipe is incomplete. Returns the new runs in the order in which they will run.
  std::vector<RunId> repeat(const std::vector<RunId>& runs, int times, QuietPatience quiet_patience = {},
                            const Repeats& how = {});

  // Continues a run that is over from its newest checkpoint that is undamaged and whose steps are all stored, as the
  // same run; a ConsoleText says why a newer one is skipped. Throws DataError if there is none. `recipe` may differ
  // from the run's own only in values that don't change the training: steps, threads, device, and the intervals of
  // validation and checkpoints (RecipeError).
  void resume(RunId run, const Recipe& recipe, QuietPatience quiet_patience = {});

  // Trains what is left of a ladder (app/session/launched_runs.h): runs that never began from their start, others
  // from their newest usable checkpoint, or, without any, as a new repeat of their rung. Returns the runs in the order
  // in which they will run; none if nothing is left. Throws as `resume` and `repeat` do, before anything is written,
  // and RecipeError while one of the ladder's runs is queued or running.
  std::vector<RunId> continue_ladder(LadderId ladder, QuietPatience quiet_patience = {});

  // Makes runs of a project that came from elsewhere, was moved or copied, or that an earlier version wrote, this
  // user's own: the verbs above refuse others with NotLaunchedHere, which says what they would train. Throws
  // StorageError.
  void adopt(const std::vector<RunId>& runs);

  // Throws NotLaunchedHere if any of these isn't this user's own, and RecipeError if another machine trains it. `what`
  // names them.
  void refuse_others(const std::vector<Run>& runs, const FieldText& what);

  // Holds a run before its next step, or lets it continue. Queued runs wait with it.
  void pause(RunId run, bool paused) { engine_.pause(run, paused); }
  bool paused(RunId run) const { return engine_.paused(run); }
  bool is_idle_or_paused() const { return engine_.is_idle_or_paused(); }  // whether no step is being taken
  std::vector<RunId> queue() const { return engine_.queue(); }
  // True if nothing trains, nothing waits, and no open question will launch more runs.
  bool idle() const;
  void move_to(RunId run, std::size_t place) { engine_.move_to(run, place); }
  void stop(RunId run);
  void stop_all(AtStop at_stop = AtStop::as_recipe_says);

  // Begins to repeat two runs in turns until it is clear which one is faster; `drain` continues it. Ends an open
  // question. Throws as SpeedupConfirmation does.
  void confirm(const SpeedupQuestion& question);
  // Begins no further round, and stops the runs of the current one: queued ones at once, the running one after its
  // step.
  void stop_confirming();
  // The running run's wait for a quiet machine, and its end: it and the queued runs start anyway, as do later rounds.
  std::optional<QuietWait> quiet_wait() const { return engine_.quiet_wait(); }
  void start_anyway();
  const SpeedupConfirmation* confirmation() const;  // the last one; null before the first

  // The events since the last call, in order: at once, or after waiting for at most `patience` for one that isn't a
  // step. Reads the steps of runs that ended, for an open question. Never throws.
  std::vector<RunEvent> drain();
  std::vector<RunEvent> wait_and_drain(std::chrono::milliseconds patience);
  // Whether its end was among the events of an earlier call, which nobody gets again.
  bool has_ended(RunId run) const { return ended_.contains(run); }

  // Blocks until every event so far is in the database and in the runs' journals, or `patience` is over; returns
  // whether they are.
  bool flush(std::chrono::milliseconds patience = std::chrono::seconds(10)) { return flush(patience, posted()); }

  // The same for the events up to a position. A loop that waits passes one: on a slow disk new events come sooner than
  // the old ones are written, so "all so far" would never be reached.
  struct Position {
    EventRing::Position recorder, journals;
  };
  Position posted() const;
  bool flush(std::chrono::milliseconds patience, const Position& until);

  // The steps that could not be stored yet because of an error. Runs continue meanwhile.
  Unstored unstored() const { return recorder_.unstored(); }
  // A sentence that says why the journals lack something; empty if they don't.
  std::string journal_trouble() const { return journals_ ? journals_->trouble() : ""; }

  // Leaves what isn't stored when the session ends in a file, without waiting; the next start stores it.
  void leave_unstored();

 private:
  struct PreparedRun {
    Run run;
    Recipe recipe;
  };
  PreparedRun prepare_repeat(RunId id, std::map<std::pair<LadderId, int>, int>& next_repeat);
  CheckpointOwner owner_of_checkpoints(const Run& run);
  ChosenCheckpoint checkpoint_to_resume(const Run& run);
  RunId create_run(Run run, const Recipe& recipe);
  void queue_again(RunId run, const Recipe& recipe);
  void begin(const std::vector<RunId>& runs);
  void submit(RunId run, const Recipe& recipe, QuietPatience quiet_patience,
              const std::filesystem::path& start_from = {});
  void apply(RunId run, const RunChange& change);   // the writer's thread
  std::vector<QueuedRun> queue_to_publish() const;  // the writer's thread
  void note(RunId run, const std::vector<std::string>& sentences);
  std::string store_steps();  // as CheckpointPlace::store_steps

  void advance_confirmation(const std::vector<RunEvent>& events);
  void take_event(const RunEvent& event);  // on the engine's threads

  OwnerThread owner_;
  RunStore store_ GUARDED_BY(owner_);
  bool waits_for_quiet_ GUARDED_BY(owner_) = true;  // before a repeat of the confirmation
  std::optional<SpeedupConfirmation> confirmation_ GUARDED_BY(owner_);
  std::optional<EventRing::Position> judge_after_ GUARDED_BY(owner_);  // judge once these events are in the database
  EventRing events_;                                                   // for drain
  const std::function<void()> wake_;
  const RunFolders folders_;
  std::optional<RunJournals> journals_;
  LaunchedRuns launched_ GUARDED_BY(owner_);
  std::atomic<bool> stops_ = false;  // somebody waits for a run to end
  std::set<RunId> ended_;            // whose ends were drained
  Engine engine_;      // its thread ends before the recorder does, which writes the last events (see ~Session)
  Recorder recorder_;  // calls the engine from the writer thread, so the engine object outlives it
};

// The rungs that a request becomes on this device, and why others are skipped. Opens the files that the recipes name;
// throws as launch_ladder does.
LadderPlan plan_of(const LadderRequest& request, const DeviceReport& report);

// The rungs that were skipped when a ladder of this project was launched, as the command line words them.
std::vector<SkippedRung> skipped_rungs(RunStore& store, const Ladder& ladder);

// The name of a run or ladder that the user left unnamed: "nano on tinyshakespeare.txt".
std::string default_name(const Recipe& recipe);

}  // namespace stepladder
