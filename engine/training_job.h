// A training for the engine to run, and the switch that pauses or stops it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "engine/files/run_checkpoints.h"
#include "engine/recipe.h"
#include "storage/records.h"
#include "storage/thread_safety.h"

namespace stepladder {

// The place of a run's checkpoints. A checkpoint waits until the recorder has written the steps before it, so that a
// run that was killed resumes without a gap in its curve.
struct CheckpointPlace {
  CheckpointOwner owner;
  // Blocks until every step emitted so far is on disk and returns an empty text, or why they aren't; any thread; empty:
  // no wait.
  std::function<std::string()> store_steps;
};

// The longest time that a run waits for a quiet machine before it starts (engine/quiet.h); without a value it doesn't
// wait.
using QuietPatience = std::optional<std::chrono::seconds>;
inline constexpr std::chrono::seconds until_quiet = std::chrono::seconds::max();

// A run that waits for a quiet machine.
struct QuietWait {
  std::chrono::steady_clock::time_point since;
  QuietPatience patience;
  std::string why;  // "others used 1.7 of 2 cores, ..."; empty before the first measurement
};

struct TrainingJob {
  RunId run = 0;
  Recipe recipe;
  CheckpointPlace checkpoints;  // needed if the recipe saves
  std::filesystem::path
      start_from;  // a checkpoint to resume from (engine/files/checkpoint_folder.h); empty: from the start
  QuietPatience quiet_patience = {};
};

// Whether a run that is stopped saves a checkpoint at its last step.
enum class AtStop { as_recipe_says, checkpoint };

// Pauses or stops a run. Shared by the training thread and those that control it; any thread may call any function.
class RunControl {
 public:
  void request_stop(AtStop at_stop = AtStop::as_recipe_says) {
    if (at_stop == AtStop::checkpoint) wants_checkpoint_ = true;
    stop_.request_stop();
  }
  bool wants_checkpoint() const { return wants_checkpoint_; }
  std::stop_token stop_token() const { return stop_.get_token(); }

  // The run waits no longer for a quiet machine; also before it begins to wait.
  void start_anyway() { starts_anyway_ = true; }
  bool starts_anyway() const { return starts_anyway_; }
  void set_quiet_wait(std::optional<QuietWait> wait) {
    const MutexLock lock(mutex_);
    quiet_wait_ = std::move(wait);
  }
  std::optional<QuietWait> quiet_wait() const {
    const MutexLock lock(mutex_);
    return quiet_wait_;
  }

  // Holds the run before its next step, or lets it continue.
  void pause(bool paused) {
    {
      const MutexLock lock(mutex_);
      paused_ = paused;
    }
    changed_.notify_all();
  }
  bool paused() const {
    const MutexLock lock(mutex_);
    return paused_;
  }

  // Whether the run is waiting between two steps because it is paused.
  bool is_held() const {
    const MutexLock lock(mutex_);
    return paused_ && waiting_;
  }

  // The training thread. Returns once the run is not paused, has to stop, or has waited for `patience`.
  void wait_while_paused(std::chrono::milliseconds patience = std::chrono::hours(24 * 365)) {
    MutexLock lock(mutex_);
    waiting_ = true;
    changed_.wait_for(lock, stop_.get_token(), patience, [this]() REQUIRES(mutex_) { return !paused_; });
    waiting_ = false;
  }

 private:
  std::stop_source stop_;
  std::atomic<bool> wants_checkpoint_ = false;
  std::atomic<bool> starts_anyway_ = false;
  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<QuietWait> quiet_wait_ GUARDED_BY(mutex_);
  bool paused_ GUARDED_BY(mutex_) = false;
  bool waiting_ GUARDED_BY(mutex_) = false;  // a thread is in wait_while_paused
};

}  // namespace stepladder
