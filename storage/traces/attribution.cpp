#include "storage/traces/attribution.h"

#include <algorithm>
#include <map>
#include <set>

#include "storage/traces/segments.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

constexpr std::size_t most_steps = 10'000;

// In the order of time, none overlapping the next.
std::vector<StepSpan> in_order(std::vector<StepSpan> spans) {
  std::sort(spans.begin(), spans.end(), [](const StepSpan& a, const StepSpan& b) { return a.start_ns < b.start_ns; });
  for (std::size_t i = 0; i + 1 < spans.size(); ++i) spans[i].end_ns = std::min(spans[i].end_ns, spans[i + 1].start_ns);
  std::erase_if(spans, [](const StepSpan& each) { return each.end_ns <= each.start_ns; });
  if (spans.size() > most_steps)
    throw TraceError("has more than " + wording::grouped(std::int64_t{most_steps}) + " steps");
  return spans;
}

void widen(std::map<std::int64_t, StepSpan>& spans, std::int64_t number, std::int64_t start, std::int64_t end) {
  const auto [place, is_new] = spans.try_emplace(number, StepSpan{number, start, end});
  if (is_new) return;
  place->second.start_ns = std::min(place->second.start_ns, start);
  place->second.end_ns = std::max(place->second.end_ns, end);
}

std::vector<StepSpan> values_of(const std::map<std::int64_t, StepSpan>& spans) {
  std::vector<StepSpan> all;
  for (const auto& [number, span] : spans) all.push_back(span);
  return in_order(std::move(all));
}

// As the CPU marks them; of a lane, if `lane` is given, as a stream does.
std::vector<StepSpan> marked_steps(const Trace& trace, SliceKind kind, const std::string* process = nullptr) {
  std::map<std::int64_t, StepSpan> spans;
  for (const TraceSlice& slice : trace.slices()) {
    if (slice.kind != kind || (process && trace.lanes()[slice.lane].process != *process)) continue;
    widen(spans, slice.correlation, slice.start_ns, slice.start_ns + slice.duration_ns);
  }
  return values_of(spans);
}

// One that holds everything.
std::vector<StepSpan> whole(const std::vector<Segment>& segments) {
  StepSpan span{.start_ns = INT64_MAX, .end_ns = INT64_MIN};
  for (const Segment& each : segments) {
    span.start_ns = std::min(span.start_ns, each.start_ns);
    span.end_ns = std::max(span.end_ns, each.end_ns);
  }
  return in_order({span});
}

// A GPU works after it was asked to, so its step begins with the first kernel that the CPU's step launched, and lasts
// until the next one's begins; the last lasts until both are done.
std::vector<StepSpan> steps_of_gpu(const std::vector<Segment>& kernels, const std::vector<StepSpan>& cpu_steps) {
  std::map<std::int64_t, StepSpan> spans;
  for (const Segment& kernel : kernels) {
    const StepSpan* const step = kernel.launched_ns != 0 ? step_at(cpu_steps, kernel.launched_ns) : nullptr;
    if (step) widen(spans, step->number, kernel.start_ns, std::max(kernel.end_ns, step->end_ns));
  }
  std::vector<StepSpan> steps;
  for (const auto& [number, span] : spans) steps.push_back(span);
  std::sort(steps.begin(), steps.end(), [](const StepSpan& a, const StepSpan& b) { return a.start_ns < b.start_ns; });
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    if (steps[i + 1].number == steps[i].number + 1) steps[i].end_ns = steps[i + 1].start_ns;
  }
  return in_order(std::move(steps));
}

// What one device did: the GPU of this name, or the CPU's threads.
struct Device {
  std::vector<Segment> segments;
  std::vector<StepSpan> steps;
  std::int64_t slices = 0;
};

Device gpu(const Trace& trace, const std::string& process, const std::vector<Launch>& launches, RowTable& rows) {
  Device device;
  std::vector<const TraceSlice*> kernels;
  for (const TraceSlice& slice : trace.slices()) {
    if (slice.kind != SliceKind::kernel || trace.lanes()[slice.lane].process != process) continue;
    const Launch* const launch = find_launch(launches, slice.correlation);
    RowKey key{.name = slice.name};
    if (launch) key = {slice.name, launch->shapes, launch->launcher, launch->part};
    device.segments.push_back(
        {slice.start_ns, slice.start_ns + slice.duration_ns, rows.row(key), launch ? launch->at_ns : 0});
  }
  device.steps = steps_of_gpu(device.segments, marked_steps(trace, SliceKind::step));
  if (device.steps.empty()) device.steps = marked_steps(trace, SliceKind::device_step, &process);
  if (device.steps.empty()) device.steps = marked_steps(trace, SliceKind::step);
  return device;
}

// Empty: there is none.
std::set<std::string> gpus_of(const Trace& trace) {
  std::set<std::string> names;
  for (const TraceSlice& slice : trace.slices()) {
    if (slice.kind == SliceKind::kernel) names.insert(trace.lanes()[slice.lane].process);
  }
  return names;
}

void add_operators(TraceProfile& profile, RowTable& rows) {
  const auto steps = static_cast<double>(std::max<std::size_t>(profile.steps.size(), 1));
  for (const Row& row : rows.rows()) {
    if (row.calls > 0 || row.busy_ns > 0) profile.operators.push_back(rows.operator_of(row, steps));
  }
}

void finish(TraceProfile& profile) {
  std::stable_sort(profile.operators.begin(), profile.operators.end(),
                   [](const TracedOperator& a, const TracedOperator& b) { return a.time.self_ms > b.time.self_ms; });
  if (!profile.has_steps)
    profile.notes.emplace_back("The trace marks no steps (ProfilerStep#), so all of it counts as one step.");
}

TraceProfile attribute_cpu(const Trace& trace) {
  TraceProfile profile{.ranks = 1};
  RowTable rows(trace);
  std::vector<StepSpan> steps = marked_steps(trace, SliceKind::step);
  profile.has_steps = !steps.empty();
  if (steps.empty()) steps.push_back({.start_ns = INT64_MIN / 2, .end_ns = INT64_MAX / 2});
  CpuTime time = cpu_time(trace, steps, &rows);
  if (time.segments.empty()) throw TraceError("holds no operator and no kernel");
  if (time.cut * 100 > static_cast<std::int64_t>(trace.slices().size()) && time.cut > 10)
    throw TraceError("has clocks that disagree: " + wording::grouped(time.cut) +
                     " of its slices end after the slices around them");
  if (!profile.has_steps) steps = whole(time.segments);
  profile.slices = time.operations;
  profile.steps = distribute(time.segments, steps, rows, false);
  for (TracedStep& step : profile.steps) step.rank = std::max(trace.rank, 0);
  add_operators(profile, rows);
  return profile;
}

TraceProfile attribute_gpus(const Trace& trace, const std::set<std::string>& gpus) {
  TraceProfile profile{.on_gpu = true, .ranks = static_cast<int>(gpus.size())};
  RowTable rows(trace);
  const CpuTime time = cpu_time(trace, {}, nullptr);
  int number = gpus.size() == 1 ? std::max(trace.rank, 0) : 0;
  std::int64_t outside = 0;
  for (const std::string& process : gpus) {
    Device device = gpu(trace, process, time.launches, rows);
    profile.has_steps = !device.steps.empty();
    if (device.steps.empty()) device.steps = whole(device.segments);
    for (const Segment& each : device.segments) {
      const bool counts = step_at(device.steps, each.start_ns) != nullptr;
      rows.rows()[each.row].calls += counts;
      (counts ? profile.slices : outside) += 1;
    }
    for (TracedStep& step : distribute(device.segments, device.steps, rows, true)) {
      step.rank = number;
      profile.steps.push_back(step);
    }
    ++number;
  }
  if (outside > 0)
    profile.notes.push_back(wording::grouped(outside) + " kernels are outside the steps and were left out.");
  add_operators(profile, rows);
  return profile;
}

}  // namespace

OperatorTime row_of(const TracedOperator& each) {
  OperatorTime row = each.time;
  if (!each.launcher.empty()) row.name = each.launcher + std::string(launches) + row.name;
  return row;
}

OperatorKind kind_of(const TracedOperator& each) {
  return kind_of(row_of(each));
}

double mean_step_ms(const TraceProfile& profile) {
  double sum = 0;
  for (const TracedStep& step : profile.steps) sum += step.dt_ms;
  return profile.steps.empty() ? missing : sum / static_cast<double>(profile.steps.size());
}

TraceProfile attribute(const Trace& trace) {
  const std::set<std::string> gpus = gpus_of(trace);
  TraceProfile profile = gpus.empty() ? attribute_cpu(trace) : attribute_gpus(trace, gpus);
  if (profile.steps.empty()) throw TraceError("holds no step with an operator in it");
  finish(profile);
  return profile;
}

TraceProfile join_ranks(std::vector<TraceProfile> ranks) {
  TraceProfile joined{.on_gpu = ranks.front().on_gpu, .has_steps = true};
  std::size_t steps = 0;
  for (const TraceProfile& each : ranks) steps += each.steps.size();
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  std::map<Key, TracedOperator> sums;
  for (TraceProfile& each : ranks) {
    if (each.on_gpu != joined.on_gpu) throw TraceError("is of a CPU only, but another rank's trace has a GPU");
    joined.has_steps = joined.has_steps && each.has_steps;
    joined.ranks += each.ranks;
    joined.slices += each.slices;
    const double weight = static_cast<double>(each.steps.size()) / static_cast<double>(steps);
    for (const TracedOperator& row : each.operators) {
      TracedOperator& sum = sums[{row.time.part, row.time.name, row.time.shapes, row.launcher}];
      const OperatorTime so_far = sum.time;
      sum.time = row.time;
      sum.launcher = row.launcher;
      sum.time.calls = so_far.calls + row.time.calls * weight;
      sum.time.self_ms = so_far.self_ms + row.time.self_ms * weight;
      sum.busy_ms += row.busy_ms * weight;
      if (!is_missing(row.time.flops))
        sum.time.flops = (is_missing(so_far.flops) ? 0 : so_far.flops) + row.time.flops * weight;
    }
    joined.steps.insert(joined.steps.end(), each.steps.begin(), each.steps.end());
    joined.notes.insert(joined.notes.end(), each.notes.begin(), each.notes.end());
  }
  for (auto& [key, sum] : sums) joined.operators.push_back(std::move(sum));
  std::sort(joined.notes.begin(), joined.notes.end());
  joined.notes.erase(std::unique(joined.notes.begin(), joined.notes.end()), joined.notes.end());
  std::stable_sort(joined.operators.begin(), joined.operators.end(),
                   [](const TracedOperator& a, const TracedOperator& b) { return a.time.self_ms > b.time.self_ms; });
  return joined;
}

}  // namespace stepladder
