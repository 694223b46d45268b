// Links each task with what it waited for, then plays the links. A predecessor is the latest end before a task's start
// that explains the start: where a stream or thread stood still, whoever ended last before it went on. The delays that
// remain are kept, so a replay without a change gives the trace.
#include "storage/analysis/prediction/replay.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace stepladder {
namespace {

// A shorter pause needs no explanation.
constexpr std::int64_t gpu_pause_ns = 1'000, thread_pause_ns = 20'000;
// From a launch to its kernel, if the GPU was always behind.
constexpr std::int64_t usual_latency_ns = 6'000;
constexpr double never = -std::numeric_limits<double>::infinity();

std::int64_t end_of(const ReplayTask& task) {
  return task.start_ns + task.duration_ns;
}

bool waits_for_gpu(const ReplayTask& task) {
  return task.own_ns >= 0;
}

}  // namespace

bool ReplayStep::has_gpu() const {
  return std::ranges::find(on_gpu, true) != on_gpu.end();
}

// The ends of all tasks that work, of the GPU's streams or of the threads, in the order of time.
struct Replay::Ends {
  const std::vector<ReplayTask>& tasks;
  std::array<std::vector<std::uint32_t>, 2> order;  // tasks; [1]: of the GPU
  std::vector<std::uint32_t> starts;                // those of threads, by their start

  explicit Ends(const ReplayStep& step) : tasks(step.tasks) {
    for (std::uint32_t i = 0; i < tasks.size(); ++i) {
      if (!tasks[i].is_outside_operators) order[step.on_gpu[tasks[i].lane]].push_back(i);
    }
    starts = order[0];
    std::ranges::stable_sort(starts,
                             [&](std::uint32_t a, std::uint32_t b) { return tasks[a].start_ns < tasks[b].start_ns; });
    for (std::vector<std::uint32_t>& each : order) {
      std::ranges::stable_sort(each,
                               [&](std::uint32_t a, std::uint32_t b) { return end_of(tasks[a]) < end_of(tasks[b]); });
    }
  }

  // When the work of other threads begins that a thread waits for from `ns` on: at once if one works already.
  std::int64_t others_begin(std::int64_t ns, std::int64_t until, std::uint32_t lane) const {
    auto at = std::lower_bound(starts.begin(), starts.end(), ns,
                               [&](std::uint32_t task, std::int64_t wanted) { return tasks[task].start_ns < wanted; });
    constexpr int near = 64;
    auto earlier = at;
    for (int i = 0; i < near && earlier != starts.begin(); ++i) {
      --earlier;
      if (tasks[*earlier].lane != lane && end_of(tasks[*earlier]) > ns) return ns;
    }
    for (int i = 0; i < most && at != starts.end(); ++i, ++at) {
      if (tasks[*at].lane != lane) return std::min(tasks[*at].start_ns, until);
    }
    return until;
  }

  // The last one that ends after `after` and not behind `until`, in another lane than this one; none: there is none.
  std::uint32_t latest(bool gpu, std::int64_t after, std::int64_t until, std::uint32_t lane) const {
    const std::vector<std::uint32_t>& ends = order[gpu];
    auto at = std::upper_bound(ends.begin(), ends.end(), until,
                               [&](std::int64_t ns, std::uint32_t task) { return ns < end_of(tasks[task]); });
    for (int i = 0; i < most && at != ends.begin(); ++i) {
      --at;
      if (end_of(tasks[*at]) <= after) break;
      if (tasks[*at].lane != lane) return *at;
    }
    return ReplayTask::none;
  }

  static constexpr int most = 10'000;  // tasks of one lane between two of others
};

Replay::Replay(ReplayStep step) : step_(std::move(step)), given_(step_.tasks.size()) {
  add_boundaries();
  link();
}

ReplayChange Replay::no_change() const {
  return {.factors = std::vector<double>(given_, 1.0)};
}

// Adds the beginning of the next step: its first launch by the main thread and its first task on the GPU; without a GPU
// the moment at which the main thread goes on.
void Replay::add_boundaries() {
  std::int64_t shortest = INT64_MAX, first_launch_ns = INT64_MAX, first_ns = INT64_MAX;
  const ReplayTask* first = nullptr;
  for (std::uint32_t i = 0; i < step_.tasks.size(); ++i) {
    const ReplayTask& task = step_.tasks[i];
    if (!step_.on_gpu[task.lane]) {
      if (task.lane == step_.main_thread) lead_ns_ = std::min(lead_ns_, task.start_ns);
      continue;
    }
    if (std::abs(task.start_ns) < first_ns) {
      first_ns = std::abs(task.start_ns);
      first = &task;
      first_ = i;
    }
    if (task.launched_by == ReplayTask::none) continue;
    const ReplayTask& launch = step_.tasks[task.launched_by];
    if (task.start_ns >= launch.start_ns) shortest = std::min(shortest, task.start_ns - launch.start_ns);
    if (launch.lane == step_.main_thread) first_launch_ns = std::min(first_launch_ns, launch.start_ns);
  }
  latency_ns_ = std::min(shortest, usual_latency_ns);
  const bool has_thread = step_.main_thread != ReplayTask::none;
  if (!first) {
    if (!has_thread) return;
    last_ = static_cast<std::uint32_t>(step_.tasks.size());
    step_.tasks.push_back({.start_ns = step_.length_ns, .lane = step_.main_thread});
    return;
  }
  const std::uint32_t lane = first->lane;
  if (has_thread && first_launch_ns != INT64_MAX) {
    last_launch_ = static_cast<std::uint32_t>(step_.tasks.size());
    const std::int64_t usual = step_.thread_end_ns + (first_launch_ns - lead_ns_);
    step_.tasks.push_back({.start_ns = std::min(usual, step_.length_ns - latency_ns_), .lane = step_.main_thread});
  }
  last_ = static_cast<std::uint32_t>(step_.tasks.size());
  step_.tasks.push_back({.start_ns = step_.length_ns, .lane = lane, .launched_by = last_launch_});
}

void Replay::link() {
  const std::vector<ReplayTask>& tasks = step_.tasks;
  const Ends ends(step_);
  std::vector<std::uint32_t> order(tasks.size());
  std::iota(order.begin(), order.end(), 0U);

  // Of each lane in the order of time; the boundaries come last.
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    const bool is_last_a = a >= given_, is_last_b = b >= given_;
    return std::tie(is_last_a, tasks[a].start_ns) < std::tie(is_last_b, tasks[b].start_ns);
  });
  std::vector<std::uint32_t> last(step_.on_gpu.size(), ReplayTask::none), before(tasks.size());
  for (const std::uint32_t task : order) before[task] = std::exchange(last[tasks[task].lane], task);

  nodes_.reserve(tasks.size());
  for (const std::uint32_t task : order) {
    Node node{.task = task};
    link_start(node, before, ends);
    link_end(node, ends);
    nodes_.push_back(node);
  }
  // A task that awaits the end of another comes behind it.
  const auto place = [&](const Node& node) {
    const ReplayTask& task = tasks[node.task];
    return std::tuple(node.task == last_, node.task == last_launch_,
                      node.awaited == ReplayTask::none || node.awaits_step_before ? task.start_ns : end_of(task),
                      end_of(task));
  };
  std::ranges::stable_sort(nodes_, [&](const Node& a, const Node& b) { return place(a) < place(b); });

  // Whatever isn't in that order, as in a trace whose clocks disagree, is no predecessor.
  std::vector<std::uint32_t> position(tasks.size());
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) position[nodes_[i].task] = i;
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    const auto is_behind = [&](std::uint32_t other) { return other != ReplayTask::none && position[other] >= i; };
    const ReplayTask& task = tasks[node.task];
    if (is_behind(node.before) || is_behind(node.other) || is_behind(task.launched_by)) {
      node.before = node.other = ReplayTask::none;
      if (is_behind(task.launched_by)) step_.tasks[node.task].launched_by = ReplayTask::none;
      node.is_anchored = true;
      node.delay_ns = task.start_ns;
    }
    if (!node.awaits_step_before && is_behind(node.awaited)) node.awaited = ReplayTask::none;
  }
}

void Replay::link_start(Node& node, const std::vector<std::uint32_t>& before, const Ends& ends) {
  const ReplayTask& task = step_.tasks[node.task];
  const bool gpu = step_.on_gpu[task.lane];
  constexpr std::int64_t none = INT64_MIN;
  std::int64_t since = none;
  node.before = before[node.task];
  if (node.before != ReplayTask::none) since = end_of(step_.tasks[node.before]);
  if (task.launched_by != ReplayTask::none) {
    const std::int64_t asked = step_.tasks[task.launched_by].start_ns;
    node.latency_ns = std::min(latency_ns_, task.start_ns - asked);
    since = std::max(since, asked + node.latency_ns);
  }
  if (node.task == first_) node.earliest_ns = std::min<std::int64_t>(task.start_ns, 0);
  since = std::max(since, node.earliest_ns);
  // The main thread begins with its step; every other lane's first task may be waiting for somebody.
  const bool begins_step = since == none && task.lane == step_.main_thread;
  const std::int64_t pause = gpu ? gpu_pause_ns : thread_pause_ns;
  if (!begins_step && (since == none || task.start_ns - since > pause) && node.task != last_launch_) {
    const std::int64_t after = since == none ? INT64_MIN : since;
    node.other = ends.latest(gpu, after, task.start_ns, task.lane);
    if (node.other != ReplayTask::none) since = end_of(step_.tasks[node.other]);
  }
  const bool waited_for_step_before = gpu && since != none && node.before == ReplayTask::none &&
                                      node.other == ReplayTask::none && task.start_ns - since > pause;
  if (waited_for_step_before) since = node.earliest_ns = task.start_ns;
  // A kernel that only its launch explains takes so long to start after it, whatever is before it.
  const bool by_launch = task.launched_by != ReplayTask::none && node.other == ReplayTask::none &&
                         since == step_.tasks[task.launched_by].start_ns + node.latency_ns && task.start_ns >= since;
  if (by_launch) {
    node.latency_ns += task.start_ns - since;
    since = task.start_ns;
  }
  node.is_anchored = since == none;
  node.delay_ns = node.is_anchored ? task.start_ns : task.start_ns - since;
}

void Replay::link_end(Node& node, const Ends& ends) {
  const ReplayTask& task = step_.tasks[node.task];
  const std::int64_t end = end_of(task);
  if (waits_for_gpu(task)) {
    node.own_ns = task.own_ns;
    node.awaited = ends.latest(true, task.start_ns + task.own_ns, end, task.lane);
    if (node.awaited == ReplayTask::none) {  // a thread may be a step ahead of the GPU
      const std::int64_t length = step_.length_ns;
      node.awaited = ends.latest(true, task.start_ns + task.own_ns + length, end + length, task.lane);
      node.awaits_step_before = node.awaited != ReplayTask::none;
      if (node.awaits_step_before) node.tail_ns = end + length - end_of(step_.tasks[node.awaited]);
      return;
    }
  } else if (task.is_outside_operators && task.duration_ns > thread_pause_ns) {
    node.awaited = ends.latest(false, task.start_ns, end, task.lane);
    if (node.awaited == ReplayTask::none) return;
    // Until the others' first task it works itself: it may be what they wait for.
    node.own_ns = ends.others_begin(task.start_ns, end, task.lane) - task.start_ns;
  }
  if (node.awaited != ReplayTask::none) node.tail_ns = end - end_of(step_.tasks[node.awaited]);
}

Replay::Played Replay::play(const ReplayChange& change, double lead_ns, bool gpu_is_instant,
                            const Played* before) const {
  std::vector<double> starts(step_.tasks.size()), ends(step_.tasks.size());
  double thread_begin = INFINITY, thread_end = never;
  for (const Node& node : nodes_) {
    const ReplayTask& task = step_.tasks[node.task];
    const bool gpu = step_.on_gpu[task.lane];
    if (gpu && gpu_is_instant) continue;
    double since = never;
    if (node.before != ReplayTask::none) since = ends[node.before];
    if (task.launched_by != ReplayTask::none)
      since = std::max(since, starts[task.launched_by] + static_cast<double>(node.latency_ns));
    if (node.other != ReplayTask::none) since = std::max(since, ends[node.other]);
    if (node.earliest_ns != INT64_MIN) since = std::max(since, static_cast<double>(node.earliest_ns));
    const double gap = node.delay_ns > 0 && !node.is_anchored ? (gpu ? change.gpu_gaps : change.thread_gaps) : 1;
    double start = static_cast<double>(node.delay_ns) * gap;
    if (node.is_anchored)
      start += task.lane == step_.main_thread && step_.has_gpu() ? lead_ns : 0;
    else
      start += since;
    const double factor = node.task < given_ ? change.factors[node.task] : 1;
    double end = start + static_cast<double>(task.duration_ns) * factor;
    if (gpu_is_instant && waits_for_gpu(task)) {
      end = start + static_cast<double>(task.own_ns) * factor;
    } else if (node.awaited != ReplayTask::none) {
      const double awaited = !node.awaits_step_before ? ends[node.awaited]
                             : before                 ? before->ends[node.awaited] - before->length_ns
                                      : static_cast<double>(end_of(step_.tasks[node.awaited]) - step_.length_ns);
      end = std::max(start + static_cast<double>(node.own_ns) * factor, awaited + static_cast<double>(node.tail_ns));
    }
    starts[node.task] = start;
    ends[node.task] = end;
    if (task.lane == step_.main_thread && node.task < given_) {
      thread_begin = std::min(thread_begin, start);
      thread_end = std::max(thread_end, end);
    }
  }
  const double begin =
      first_ != ReplayTask::none ? starts[first_] - static_cast<double>(step_.tasks[first_].start_ns) : 0;
  const double length = last_ == ReplayTask::none ? 0 : starts[last_] - begin;
  for (double& end : ends) end -= begin;
  return {.ends = std::move(ends),
          .length_ns = length,
          .thread_end_ns = thread_end - begin,
          .thread_ns = thread_end - thread_begin};
}

double Replay::length_ns(const ReplayChange& change) const {
  const auto traced = static_cast<double>(step_.length_ns);
  if (last_ == ReplayTask::none) return traced;
  Played now = play(change, 0, false, nullptr);
  if (!step_.has_gpu() || last_launch_ == ReplayTask::none) return now.length_ns;

  // The thread begins its next step when it has ended this one, but never farther ahead of the GPU than in the trace.
  const Played traced_step = play(no_change(), 0, false, nullptr);
  const double excess = std::max(0.0, traced_step.thread_ns - traced_step.length_ns);
  constexpr int steps = 24;
  double lead = 0, sum = 0;
  int counted = 0;
  for (int i = 0; i < steps; ++i) {
    lead = std::max(0.0, now.thread_end_ns - now.length_ns - static_cast<double>(lead_ns_) - excess);
    Played next = play(change, lead, false, &now);
    const bool is_steady = std::abs(next.length_ns - now.length_ns) < 1;
    now = std::move(next);
    if (is_steady) break;
    if (i < steps / 2) continue;  // its steps may take turns at being long and short
    sum += now.length_ns;
    ++counted;
  }
  const double steady = counted == steps / 2 ? sum / counted : now.length_ns;
  // Where its lead lasts longer than that, the thread alone takes this long.
  return std::max(steady, play(change, 0, true, nullptr).thread_ns - excess);
}

}  // namespace stepladder
