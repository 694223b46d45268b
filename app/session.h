// One engine, one recorder and the mailbox to whoever watches, wired together. The window and the command line are two
// faces of the same session.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/stage.h"
#include "storage/database/recorder.h"
#include "storage/database/run_store.h"

namespace stepladder {

// What a user asks for. `stages` empty means all that keep the loss and that the device can do.
struct LadderRequest {
  std::string name;  // empty: made from model and data
  std::string notes;
  Recipe base;
  std::vector<PlannedStage> stages;
  Climb climb = Climb::together;
  int repeats = 1;
  bool interleave = false;  // random order of the runs instead of rung after rung
};

struct RunSpec {
  std::string name;  // empty: made from model and data
  Recipe base;
  std::vector<std::string> stages;
  std::optional<RunId> fork_of;           // start from a checkpoint of this run
  std::optional<std::int64_t> fork_step;  // unless it is the newest
};

struct LaunchedLadder {
  LadderId ladder = 0;
  std::vector<RunId> runs;  // in the order in which they will run
  LadderPlan plan;
};

// Lives on the thread that made it (the UI thread, or main); every verb is called from there. Only `launch_*` and the
// store's own verbs touch the disk.
class Session {
 public:
  // Opens the database (throws StorageError), closes runs whose process died, starts the writer and the engine threads.
  // `wake` is called from the engine or the writer thread when a run has started or ended or the disk has failed;
  // steps, which may come by the thousand, are found at the next look.
  explicit Session(const std::filesystem::path& database, std::function<void()> wake = {},
                   const TrainerLibrary* library = nullptr);

  // Stops what runs after its current step, writes everything, joins both threads.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  RunStore& store() { return store_; }

  // What this machine has; never blocks (see Engine::probe).
  std::shared_future<DeviceReport> probe() { return engine_->probe(); }

  // Both check recipe and data first (RecipeError, DataError), then make the rows and queue the runs.
  LaunchedLadder launch_ladder(const LadderRequest& request, const DeviceReport& report);
  RunId launch_run(const RunSpec& request, const DeviceReport& report);

  // Each of these runs, by its own recipe, `times` more: repeats of its rung where it belongs to a ladder, in random
  // order, so that none has the better hour. Throws RecipeError for a run that was not launched by us (its recipe is
  // not known whole). Returns the new runs in the order in which they will run.
  std::vector<RunId> repeat(const std::vector<RunId>& runs, int times);

  // Goes on with a run that is over from its newest checkpoint, as the same run. `recipe` is the run's own, but for
  // what does not change the training: steps, threads, device, and how often it is evaluated and saved (RecipeError).
  void resume(RunId run, const Recipe& recipe);

  // Held before its next step, and let go on. Queued runs wait with it.
  void pause(RunId run, bool paused) { engine_->pause(run, paused); }
  bool paused(RunId run) const { return engine_->paused(run); }
  bool holding() const { return engine_->holding(); }  // nothing trains at this moment
  std::vector<RunId> queue() const { return engine_->queue(); }
  void move_to(RunId run, std::size_t place) { engine_->move_to(run, place); }
  void stop(RunId run) { engine_->stop(run); }
  void stop_all() { engine_->stop_all(); }

  // What has happened since the last call, in order: at once, or after waiting for at most `patience`.
  std::vector<RunEvent> drain() { return events_.drain(); }
  std::vector<RunEvent> wait_and_drain(std::chrono::milliseconds patience) { return events_.wait_and_drain(patience); }

  // Blocks until every event so far is in the database.
  void flush() { recorder_->flush(); }

  // Why steps are no longer written, or empty. All runs are stopped when this happens.
  std::string storage_error() const { return recorder_->error(); }

 private:
  RunId create_run(Run run, const Recipe& recipe);
  void submit(RunId run, const Recipe& recipe, const std::filesystem::path& start_from = {});
  void apply_request(RunId run, RunRequest request);

  RunStore store_;
  Mailbox<RunEvent> events_;
  std::function<void()> wake_;
  std::unique_ptr<Recorder> recorder_;  // outlives the engine, whose last events it writes
  std::unique_ptr<Engine> engine_;
};

// "nano on tinyshakespeare.txt": what a run or ladder is called where its user gave no name.
std::string default_name(const Recipe& recipe);

}  // namespace stepladder
