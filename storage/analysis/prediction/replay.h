// Plays a traced step again with some of its work made longer or shorter. A task starts when the tasks that it waited
// for in the trace have ended: the one before it in its stream or thread, its launch, and what another stream or thread
// did until just before it. All other delays stay as they were. (Zhu, Phanishayee and Pekhimenko 2020, "Daydream:
// accurately estimating the efficacy of optimizations for DNN training", USENIX ATC.) Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "storage/analysis/step_profile.h"

namespace stepladder {

struct ReplayTask {
  static constexpr std::uint32_t none = UINT32_MAX;

  std::int64_t start_ns = 0;  // since the step's start
  std::int64_t duration_ns = 0;
  std::uint32_t lane = 0;  // of ReplayStep::on_gpu
  OperatorKind kind = OperatorKind::between;
  std::uint16_t place = 0;            // of the caller
  std::uint32_t name = 0;             // of the caller: the operator that it belongs to
  std::uint32_t launched_by = none;   // of a GPU's task: the thread's task that asked for it; none: not known
  std::int64_t own_ns = -1;           // of a thread that waits for the GPU: its own part of the time; -1: all of it
  bool is_outside_operators = false;  // of a thread: it may wait for another thread meanwhile
};

// One step. Tasks of one lane are in the order of time and don't overlap.
struct ReplayStep {
  std::vector<ReplayTask> tasks;
  std::vector<bool> on_gpu;        // by lane
  std::int64_t length_ns = 0;      // of the step
  std::uint32_t main_thread = 0;   // the lane that takes the steps; ReplayTask::none: not known
  std::int64_t thread_end_ns = 0;  // of its step
  bool has_gpu() const;
};

// The factors by which the durations of tasks change, one for each task, and those of time in no task.
struct ReplayChange {
  std::vector<double> factors;
  double thread_gaps = 1;  // between tasks of a thread
  double gpu_gaps = 1;     // of a GPU that was asked for its next task already
};

// Keeps the step, with what each task waits for.
class Replay {
 public:
  explicit Replay(ReplayStep step);

  const ReplayStep& step() const { return step_; }
  ReplayChange no_change() const;

  // The length of the step in nanoseconds, as in the middle of a training: a thread that runs ahead of the GPU gains or
  // loses its lead over several steps. Without a change the traced length.
  double length_ns(const ReplayChange& change) const;

 private:
  struct Node {
    std::uint32_t task = 0;
    std::uint32_t before = ReplayTask::none;   // in its lane
    std::uint32_t other = ReplayTask::none;    // in another lane: it starts after that one has ended
    std::uint32_t awaited = ReplayTask::none;  // it ends after that one has ended
    std::int64_t delay_ns = 0;                 // between the last of these, or its launch, and its start
    std::int64_t tail_ns = 0;                  // between the end of what it awaited and its own
    std::int64_t own_ns = 0;                   // of its duration, where it awaited something
    std::int64_t latency_ns = 0;               // from its launch, at least
    bool awaits_step_before = false;           // what it awaited is that task of the step before
    std::int64_t earliest_ns = INT64_MIN;      // work of the step before kept it from starting earlier
    bool is_anchored = false;                  // nothing before it: it starts when it did, `delay_ns` after 0
  };
  struct Ends;
  struct Played {
    std::vector<double> ends;  // of the tasks, since the step's start
    double length_ns = 0;
    double thread_end_ns = 0;  // of the main thread
    double thread_ns = 0;      // that its step took
  };

  void add_boundaries();
  void link();
  void link_start(Node& node, const std::vector<std::uint32_t>& before, const Ends& ends);
  void link_end(Node& node, const Ends& ends);
  // `before`: the step before; null: the traced one.
  Played play(const ReplayChange& change, double lead_ns, bool gpu_is_instant, const Played* before) const;

  ReplayStep step_;
  std::size_t given_ = 0;  // tasks that came from the caller; the others mark the step's boundaries
  std::uint32_t last_launch_ = ReplayTask::none, last_ = ReplayTask::none;  // these: of the next step
  std::uint32_t first_ = ReplayTask::none;                                  // the GPU's task with which the step begins
  std::int64_t latency_ns_ = 0;  // the shortest between a launch and its task
  std::int64_t lead_ns_ = 0;     // when the main thread begins its step
  std::vector<Node> nodes_;      // in an order in which each one's predecessors come first
};

}  // namespace stepladder
