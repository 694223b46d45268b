// Splits the rows of a profile by the parts of the model that their slices are in, and turns changes of rows into
// factors of tasks.
#include "storage/traces/step_prediction.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "storage/analysis/statistics.h"
#include "storage/traces/replay_step.h"

namespace stepladder {
namespace {

bool is_about(const WorkChange& change, OperatorKind kind) {
  return std::find(change.kinds.begin(), change.kinds.end(), kind) != change.kinds.end();
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
  return std::any_of(rows_.begin(), rows_.end(), [](const LawRow& row) { return row.part != ModelPart::unknown; });
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

}  // namespace stepladder
