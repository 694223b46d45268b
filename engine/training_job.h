// A training for the engine to run, and the switch that pauses or stops it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <stop_token>

#include "engine/recipe.h"
#include "storage/records.h"
#include "storage/thread_safety.h"

namespace stepladder {

// Where a run's checkpoints are written. A checkpoint waits until the recorder has written the steps before it, so that
// a run that was killed resumes without a gap in its curve.
struct CheckpointPlace {
  std::filesystem::path folder;  // the run's own; made with the first checkpoint
  std::function<void()>
      steps_recorded;  // blocks until every step emitted so far is on disk; any thread; empty: no wait
};

struct TrainingJob {
  RunId run = 0;
  Recipe recipe;
  CheckpointPlace checkpoints;  // needed if the recipe saves
  std::filesystem::path
      start_from;  // a checkpoint to resume from (engine/files/checkpoint_folder.h); empty: from the start
};

// Pauses or stops a run. Shared by the training thread and those that control it; any thread may call any function.
class RunControl {
 public:
  void request_stop() { stop_.request_stop(); }
  std::stop_token stop_token() const { return stop_.get_token(); }

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

  // Whether the run is paused between two steps right now.
  bool holding() const {
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
  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  bool paused_ GUARDED_BY(mutex_) = false;
  bool waiting_ GUARDED_BY(mutex_) = false;  // a thread is in wait_while_paused
};

}  // namespace stepladder
