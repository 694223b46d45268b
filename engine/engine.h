// Runs trainings one after the other on its own thread. LibTorch is loaded on that thread at first use, so this header
// needs none of it.
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

// Makes LibTorch's worker threads (GNU OpenMP) sleep sooner while they wait for each other, unless the user has set
// OMP_WAIT_POLICY or GOMP_SPINCOUNT. Spinning threads make a step a hundred times slower while another program is busy
// (docs/measuring.md has the figures). `main` calls it once, before it starts threads.
void keep_workers_from_spinning();

class Engine {
 public:
  // `listener` is called on the engine thread, on the thread that samples the machine, and (for a run that is taken off
  // the queue) on the thread that called stop; it must not block. Each submitted run ends with exactly one RunEnded,
  // its last event. Tests pass a `library` that trains without LibTorch; by default the engine opens the real one
  // beside the program.
  explicit Engine(std::function<void(const RunEvent&)> listener, const TrainerLibrary* library = nullptr);

  // Closes the engine.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Stops the running run after its current step, takes the others off the queue, and joins the thread: no event is
  // sent after it returns. Don't submit runs afterwards; the other functions may still be called and do nothing.
  void close();

  // Puts a run at the end of the queue. Never blocks.
  void submit(TrainingJob job);

  // Stops a queued run at once, the running one after its current step. Unknown runs are ignored. Never blocks.
  void stop(RunId run);
  void stop_all(AtStop at_stop = AtStop::as_recipe_says);

  // A paused run waits before its next step (a queued one before its first), and so do the runs behind it. Unknown runs
  // are ignored. Never blocks.
  void pause(RunId run, bool paused);
  bool paused(RunId run) const;

  // The wait of the run that would run now for a quiet machine; nullopt if it doesn't wait. `start_anyway` ends it, and
  // that of the queued runs too. `gave_up_quiet`: the running one began on a machine that wasn't quiet.
  std::optional<QuietWait> quiet_wait() const;
  void start_anyway();
  bool gave_up_quiet() const;

  // Whether no step is being taken: no run is running, or the running one is paused between two steps.
  bool is_idle_or_paused() const;

  // Whether nothing is queued or running.
  bool idle() const;

  std::optional<RunId> running() const;

  // The queued runs, the next one first. `move_to` moves one of them to another place (0: the next).
  std::vector<RunId> queue() const;
  void move_to(RunId run, std::size_t place);

  // Blocks until nothing is queued or running.
  void wait_idle();

  // Detects what this machine has. Loads LibTorch, so the first answer takes about half a second (more with CUDA). The
  // future holds a std::runtime_error if LibTorch cannot be loaded. Never blocks.
  std::shared_future<DeviceReport> probe();

  // Measures the peaks of the default device, between two runs, in some ten seconds. The future holds a
  // std::runtime_error if that fails, or if `stop_requested` (called on the engine thread) returns true. Never blocks.
  std::future<PeakProbe> measure_peak(std::function<bool()> stop_requested);

  // Measures the time of a model's passes, under the same conditions as measure_peak.
  std::future<std::vector<CallTimes>> time_calls(CallTimesRequest request, std::function<bool()> stop_requested);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepladder
