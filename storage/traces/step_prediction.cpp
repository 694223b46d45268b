// Splits the rows of a profile by the parts of the model that their slices are in, and turns changes of rows into
// factors of tasks.
#include "storage/traces/step_prediction.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

#include "storage/analysis/statistics.h"
#include "storage/traces/trace.h"

namespace stepladder {
namespace {

bool is_about(const WorkChange& change, OperatorKind kind) {
  return std::ranges::find(change.kinds, kind) != change.kinds.end();
}

}  // namespace

PredictedSteps::PredictedSteps(const TraceProfile& profile, std::vector<StepSlices> kept, double run_ms)
    : on_gpu_(profile.on_gpu) {
  // Other programs only make a step longer, so those that they disturbed don't count; nor does one that was cut off.
  constexpr double undisturbed = 1.25, cut_off = 0.5;
  std::vector<double> lengths;
  for (const StepSlices& each : kept)
    if (each.length_ns > 0) lengths.push_back(static_cast<double>(each.length_ns));
  double shortest = INFINITY;
  for (const double each : lengths)
    if (each >= cut_off * median_of(lengths)) shortest = std::min(shortest, each);
  if (!lengths.empty()) shortest_ms_ = shortest / 1e6;
  for (StepSlices& each : kept) {
    const auto length = static_cast<double>(each.length_ns);
    if (length < shortest || length > undisturbed * shortest) continue;
    Replay replay(replay_step(each));
    Step step{.replay = std::move(replay), .places = std::move(each.places), .names = std::move(each.names)};
    take_profiler_off(step, on_gpu_ ? missing : run_ms);
    steps_.push_back(std::move(step));
  }
  make_rows(profile);
}

void PredictedSteps::take_profiler_off(Step& step, double run_ms) {
  ReplayChange change = step.replay.no_change();
  const ReplayStep& played = step.replay.step();
  const double excess_ns = static_cast<double>(played.length_ns) - run_ms * 1e6;
  double pieces = 0;
  for (std::size_t i = 0; i < change.factors.size(); ++i) pieces += played.tasks[i].lane == played.main_thread;
  if (excess_ns > 0 && pieces > 0) {
    const double slice_ns = excess_ns / pieces;
    constexpr double least = 0.2;
    for (std::size_t i = 0; i < change.factors.size(); ++i) {
      const auto ns = static_cast<double>(played.tasks[i].duration_ns);
      if (ns > 0) change.factors[i] = std::max(least, 1 - slice_ns / ns);
    }
  }
  step.length_ns = step.replay.length_ns(change);
  step.without_profiler = std::move(change.factors);
}

void PredictedSteps::make_rows(const TraceProfile& profile) {
  using Key = std::pair<OperatorKind, std::string>;
  std::map<Key, std::map<ModelPart, double>> parts;
  std::map<OperatorKind, std::vector<double>> durations;
  for (const Step& step : steps_) {
    const ReplayStep& played = step.replay.step();
    for (std::size_t i = 0; i < step.replay.no_change().factors.size(); ++i) {
      const ReplayTask& task = played.tasks[i];
      if (played.on_gpu[task.lane] != on_gpu_) continue;
      const double ns = static_cast<double>(task.duration_ns) * step.without_profiler[i];
      parts[{task.kind, step.names[task.name]}][step.places[task.place].part] += ns;
      durations[task.kind].push_back(ns / 1e6);
    }
  }
  // A quarter of the calls do so little that they show what a call costs.
  constexpr double little = 0.25;
  std::map<OperatorKind, double> call_ms;
  for (auto& [kind, all] : durations) call_ms[kind] = quantile(all, little);
  const auto steps = static_cast<double>(steps_.size());
  const auto name_of = [](const TracedOperator& each) {
    return each.launcher.empty() ? each.time.name : each.launcher;
  };
  const auto ms_of_row = [&](const TracedOperator& each) { return on_gpu_ ? each.busy_ms : each.time.self_ms; };
  std::map<Key, double> row_ms;  // several rows may have one kind and name
  for (const TracedOperator& each : profile.operators) row_ms[{kind_of(each), name_of(each)}] += ms_of_row(each);
  for (const TracedOperator& each : profile.operators) {
    const OperatorKind kind = kind_of(each);
    LawRow row{.kind = kind,
               .name = name_of(each),
               .ms = ms_of_row(each),
               .calls = each.time.calls,
               .call_ms = call_ms[kind],
               .flops = each.time.flops,
               .bytes = each.bytes};
    if (kind == OperatorKind::communication) exposed_ms_ += each.time.self_ms;
    const auto found = parts.find({kind, row.name});
    double sum = 0;
    if (found != parts.end()) {
      for (const auto& [part, ns] : found->second) sum += ns;
    }
    if (sum <= 0 || row.ms <= 0) {
      rows_.push_back(std::move(row));
      continue;
    }
    for (const auto& [part, ns] : found->second) {
      LawRow piece = row;
      piece.part = part;
      piece.ms = ns / 1e6 / steps * (row.ms / row_ms[{kind, row.name}]);
      piece.calls *= ns / sum;
      if (!is_missing(piece.flops)) piece.flops *= ns / sum;
      if (!is_missing(piece.bytes)) piece.bytes *= ns / sum;
      rows_.push_back(std::move(piece));
    }
  }
}

double PredictedSteps::ms_of(const WorkChange& change) const {
  double ms = 0;
  for (const LawRow& row : rows_) ms += change.matches(row.kind, row.part, row.name) ? row.ms : 0;
  return ms;
}

bool PredictedSteps::are_parts_known() const {
  return std::ranges::any_of(rows_, [](const LawRow& row) { return row.part != ModelPart::unknown; });
}

ReplayChange PredictedSteps::change_of(const Step& step, std::span<const WorkChange> changes) const {
  ReplayChange made{.factors = step.without_profiler};
  const ReplayStep& played = step.replay.step();
  for (const WorkChange& change : changes) {
    const bool launches = on_gpu_ && is_about(change, OperatorKind::idle);
    if (launches) {
      made.thread_gaps *= change.factor;
      made.gpu_gaps *= change.factor;
    }
    for (std::size_t i = 0; i < made.factors.size(); ++i) {
      const ReplayTask& task = played.tasks[i];
      const bool is_of_thread = on_gpu_ && !played.on_gpu[task.lane];
      const bool counts = is_of_thread ? launches || (task.kind == OperatorKind::data && is_about(change, task.kind))
                                       : change.matches(task.kind, step.places[task.place].part, step.names[task.name]);
      if (counts) made.factors[i] *= change.factor;
    }
  }
  return made;
}

std::vector<double> PredictedSteps::length_ratios(std::span<const WorkChange> changes) const {
  std::vector<double> ratios;
  for (const Step& step : steps_) ratios.push_back(step.replay.length_ns(change_of(step, changes)) / step.length_ns);
  return ratios;
}

namespace {

// A launch waits for room in the GPU's queue if the GPU is this far behind, and it takes so many times as long as fast
// ones do.
constexpr std::int64_t far_behind_ns = 500'000;
constexpr double times_longer = 2;

std::int64_t end_of(const KeptSlice& slice) {
  return slice.start_ns + slice.duration_ns;
}

class StepReader {
 public:
  explicit StepReader(const StepSlices& step) : step_(step) {
    made_.length_ns = step.length_ns;
    made_.main_thread = ReplayTask::none;
    for (const SliceLane& lane : step.lanes) made_.on_gpu.push_back(lane.on_gpu);
    for (const std::string& name : step.names) {
      marks_step_.push_back(step_number(name) >= 0);
      synchronises_.push_back(name.find("Synchronize") != std::string::npos);
    }
  }

  ReplayStep read() {
    read_kernels();
    measure_launches();
    for (std::size_t first = 0; first < step_.rows.size();) {
      std::size_t behind = first;
      while (behind < step_.rows.size() && step_.rows[behind].lane == step_.rows[first].lane) ++behind;
      if (!step_.lanes[step_.rows[first].lane].on_gpu) read_thread(first, behind);
      first = behind;
    }
    for (std::size_t i = 0; i < kernels_; ++i) {
      const auto launch = launches_.find(correlations_[i]);
      if (correlations_[i] == 0 || launch == launches_.end()) continue;
      made_.tasks[i].launched_by = launch->second;
      made_.tasks[i].name = made_.tasks[launch->second].name;
    }
    return std::move(made_);
  }

 private:
  struct Open {
    const KeptSlice* slice;
    bool is_launched = false;  // its launch is a task already
  };

  // Kernels beside each other in one stream get a lane for each of their rows.
  void read_kernels() {
    for (const SliceRow& row : step_.rows) {
      if (!step_.lanes[row.lane].on_gpu) continue;
      std::uint32_t lane = row.lane;
      if (row.depth > 0) {
        lane = static_cast<std::uint32_t>(made_.on_gpu.size());
        made_.on_gpu.push_back(true);
      }
      for (const KeptSlice& slice : row.slices) {
        if (slice.correlation != 0) {
          std::int64_t& end = kernel_ends_[slice.correlation];
          end = std::max(end, end_of(slice));
          kernel_starts_.try_emplace(slice.correlation, slice.start_ns);
        }
        correlations_.push_back(slice.correlation);
        made_.tasks.push_back({.start_ns = slice.start_ns,
                               .duration_ns = slice.duration_ns,
                               .lane = lane,
                               .kind = slice.kind,
                               .place = slice.place,
                               .name = slice.name});
      }
    }
    kernels_ = made_.tasks.size();
  }

  void measure_launches() {
    std::map<std::uint32_t, std::vector<double>> durations;
    for (const SliceRow& row : step_.rows) {
      if (step_.lanes[row.lane].on_gpu) continue;
      for (const KeptSlice& slice : row.slices) {
        if (slice.correlation != 0) durations[slice.name].push_back(static_cast<double>(slice.duration_ns));
      }
    }
    constexpr double fast = 0.1;
    for (auto& [name, all] : durations) usual_ns_[name] = quantile(all, fast);
  }

  void read_thread(std::size_t first, std::size_t behind) {
    std::vector<std::pair<const KeptSlice*, std::uint32_t>> slices;  // with their depth
    for (std::size_t row = first; row < behind; ++row) {
      for (const KeptSlice& slice : step_.rows[row].slices) slices.emplace_back(&slice, step_.rows[row].depth);
    }
    std::ranges::stable_sort(slices, [](const auto& a, const auto& b) {
      return std::pair(a.first->start_ns, a.second) < std::pair(b.first->start_ns, b.second);
    });
    lane_ = step_.rows[first].lane;
    cursor_ = INT64_MIN;
    for (const auto& [slice, depth] : slices) {
      leave_until(slice->start_ns);
      if (!open_.empty()) emit(open_.back(), slice->start_ns);
      cursor_ = std::max(cursor_, slice->start_ns);
      open_.push_back({slice});
      if (marks_step_[slice->name] || made_.main_thread == ReplayTask::none) {
        made_.main_thread = lane_;
        made_.thread_end_ns = end_of(*slice);
      } else if (made_.main_thread == lane_) {
        made_.thread_end_ns = std::max(made_.thread_end_ns, end_of(*slice));
      }
    }
    leave_until(INT64_MAX);
  }

  void leave_until(std::int64_t ns) {
    while (!open_.empty() && end_of(*open_.back().slice) <= ns) {
      emit(open_.back(), end_of(*open_.back().slice));
      open_.pop_back();
    }
  }

  // Adds the open slice's time from the cursor on.
  void emit(Open& open, std::int64_t until) {
    const KeptSlice& slice = *open.slice;
    const bool launches = slice.correlation != 0 && !open.is_launched;
    const KeptSlice* const around =
        slice.correlation != 0 && open_.size() > 1 ? open_[open_.size() - 2].slice : nullptr;
    if (until <= cursor_ && !launches) return;
    ReplayTask task{.start_ns = cursor_,
                    .duration_ns = std::max<std::int64_t>(until - cursor_, 0),
                    .lane = lane_,
                    .kind = slice.kind,
                    .place = slice.place,
                    .name = around ? around->name : slice.name};
    cursor_ = std::max(cursor_, until);
    if (slice.correlation == 0) {
      task.is_outside_operators = slice.kind == OperatorKind::between;
      made_.tasks.push_back(task);
      return;
    }
    if (!std::exchange(open.is_launched, true))
      launches_.try_emplace(slice.correlation, static_cast<std::uint32_t>(made_.tasks.size()));
    const std::int64_t own = own_ns(slice, task.duration_ns);
    if (own < task.duration_ns) {  // what it asks for may be what it waits for
      ReplayTask launch = task;
      launch.duration_ns = own;
      made_.tasks.push_back(launch);
      task.start_ns += own;
      task.duration_ns -= own;
      task.own_ns = 0;
    }
    made_.tasks.push_back(task);
  }

  // The part of a call's time in which it doesn't wait for the GPU.
  std::int64_t own_ns(const KeptSlice& slice, std::int64_t duration_ns) const {
    const std::int64_t usual = std::min<std::int64_t>(5'000, duration_ns);
    if (synchronises_[slice.name]) return usual;
    const auto end = kernel_ends_.find(slice.correlation);
    if (end == kernel_ends_.end()) return duration_ns;
    if (end->second <= end_of(slice) && duration_ns > usual) return usual;
    const double typical = usual_ns_.at(slice.name);
    const bool gpu_is_behind = kernel_starts_.at(slice.correlation) - end_of(slice) > far_behind_ns;
    if (static_cast<double>(duration_ns) > times_longer * typical && gpu_is_behind)
      return static_cast<std::int64_t>(typical);
    return duration_ns;
  }

  const StepSlices& step_;
  ReplayStep made_;
  std::vector<bool> marks_step_, synchronises_;  // by name
  std::size_t kernels_ = 0;
  std::vector<std::uint32_t> correlations_;                    // of the kernels
  std::unordered_map<std::uint32_t, std::uint32_t> launches_;  // tasks by correlation
  std::unordered_map<std::uint32_t, std::int64_t> kernel_starts_, kernel_ends_;
  std::map<std::uint32_t, double> usual_ns_;  // of a launch's duration, by name
  std::vector<Open> open_;
  std::uint32_t lane_ = 0;
  std::int64_t cursor_ = 0;
};

}  // namespace

ReplayStep replay_step(const StepSlices& step) {
  return StepReader(step).read();
}

}  // namespace stepladder
