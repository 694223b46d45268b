// Runs trainings one after the other on a thread of its own. LibTorch is loaded on that thread at first use, so whoever
// includes this pays nothing for it.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "engine/call_times.h"
#include "engine/device.h"
#include "engine/peak_probe.h"
#include "engine/training_job.h"
#include "storage/records.h"

namespace stepladder {

struct TrainerLibrary;

// Called once by `main`, before there are threads. LibTorch's worker threads (GNU OpenMP) spin while they wait for each
// other; beside another busy program that makes a step a hundred times slower. They go to sleep sooner after this,
// unless the user has set OMP_WAIT_POLICY or GOMP_SPINCOUNT (docs/measuring.md has the figures).
void keep_workers_from_spinning();

class Engine {
 public:
  // `listener` is called on the engine thread, with what the machine does on a thread beside it, or (for a run that is
  // taken off the queue) on the thread that called stop; it must not block. Each run that was submitted ends with
  // exactly one RunEnded, its last event. `library` is given by tests that train without LibTorch; otherwise the real
  // one is opened, which lies beside the program.
  explicit Engine(std::function<void(const RunEvent&)> listener, const TrainerLibrary* library = nullptr);

  // Stops the running run after its current step, takes the others off the queue, and joins the thread.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Puts a run at the end of the queue. Never blocks.
  void submit(TrainingJob job);

  // A queued run ends as stopped at once, the running one after its current step. Unknown runs are ignored. Never
  // blocks.
  void stop(RunId run);
  void stop_all();

  // A paused run waits before its next step (a queued one before its first), and those behind it wait with it. Unknown
  // runs are ignored. Never blocks.
  void pause(RunId run, bool paused);
  bool paused(RunId run) const;

  // Whether nothing trains at this moment: no run is running, or the one that is waits between two steps.
  bool holding() const;

  // The runs that wait, the next one first; and the place that one of them shall have among them (0: the next).
  std::vector<RunId> queue() const;
  void move_to(RunId run, std::size_t place);

  // Blocks until nothing is queued or running.
  void wait_idle();

  // What this machine has; loads LibTorch, so the first call takes about half a second (more with CUDA). The future
  // holds a std::runtime_error where LibTorch cannot be loaded. Never blocks.
  std::shared_future<DeviceReport> probe();

  // What its default device reaches at best, measured between two runs in some ten seconds. The future holds a
  // std::runtime_error where that cannot be done, and where `stop_requested` (asked from the engine thread) says so.
  // Never blocks.
  std::future<PeakProbe> measure_peak(std::function<bool()> stop_requested);

  // How long a model's passes take, likewise.
  std::future<std::vector<CallTimes>> time_calls(CallTimesRequest request, std::function<bool()> stop_requested);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepladder
