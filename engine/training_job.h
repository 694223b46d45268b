// What the engine is asked to do, and how it is told to wait or to stop meanwhile.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <stop_token>

#include "engine/recipe.h"
#include "storage/records.h"

namespace stepladder {

// Where a run is saved. Whoever records its steps says when they are on the disk, so that no checkpoint is ever ahead
// of them: a run that was killed goes on without a gap in its curve.
struct CheckpointPlace {
  std::filesystem::path folder;          // the run's own; made with the first checkpoint
  std::function<void()> steps_recorded;  // blocks until every step emitted so far is kept; any thread; empty: no wait
};

struct TrainingJob {
  RunId run = 0;
  Recipe recipe;
  CheckpointPlace checkpoints;  // needed where the recipe saves
  std::filesystem::path
      start_from;  // a checkpoint to go on from (engine/files/checkpoint_folder.h); empty: from the start
};

// Shared by the thread that trains and those that tell it what to do. All functions may be called from any thread.
class RunControl {
 public:
  void request_stop() { stop_.request_stop(); }
  std::stop_token stop_token() const { return stop_.get_token(); }

  // Holds the run before its next step, and lets it go on.
  void pause(bool paused) {
    {
      const std::lock_guard lock(mutex_);
      paused_ = paused;
    }
    changed_.notify_all();
  }
  bool paused() const {
    const std::lock_guard lock(mutex_);
    return paused_;
  }

  // Whether the run is held at this moment: nothing of it goes on until it is let go.
  bool holding() const {
    const std::lock_guard lock(mutex_);
    return paused_ && waiting_;
  }

  // Returns when the run is not paused, is to stop, or has waited for so long.
  void wait_while_paused(std::chrono::milliseconds patience = std::chrono::hours(24 * 365)) {
    std::unique_lock lock(mutex_);
    waiting_ = true;
    changed_.wait_for(lock, stop_.get_token(), patience, [this] { return !paused_; });
    waiting_ = false;
  }

 private:
  std::stop_source stop_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  bool paused_ = false;
  bool waiting_ = false;  // a thread is in wait_while_paused
};

}  // namespace stepladder
