// From a sorted trace to a profile: find GPUs and steps, place the slices (places.h), make segments, distribute the
// time (segments.h), keep a few steps whole. A GPU's step is bounded by its own kernels, not by the CPU's range, since
// the CPU runs ahead.
#include "storage/traces/attribution.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "storage/traces/memory.h"
#include "storage/traces/segments.h"
#include "storage/traces/slice_reader.h"
#include "storage/traces/traced_process.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

// One span that holds everything.
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

// The work of one device: of the GPU of this name, or of the CPU's threads.
struct Device {
  std::vector<Segment> segments;
  std::vector<StepSpan> steps;
  std::int64_t slices = 0;
};

// Finds the kernels that do an operator's work: of those that one call launched, the longest. The others prepare it, or
// add up.
class LongestKernels {
 public:
  explicit LongestKernels(std::uint32_t calls) : longest_(std::size_t{calls} + 1, none) {}

  // The last of the segments.
  void offer(std::vector<Segment>& segments, const Launch& launch) {
    const auto length = [&](std::size_t i) { return segments[i].end_ns - segments[i].start_ns; };
    const std::size_t last = segments.size() - 1;
    std::uint32_t& longest = longest_[launch.call];
    if (longest != none && length(longest) >= length(last)) return;
    if (longest != none) segments[longest].operands = 0;
    longest = static_cast<std::uint32_t>(last);
    segments[last].operands = launch.operands;
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  std::vector<std::uint32_t> longest_;  // a place among the segments, by call
};

Device gpu(const Trace& trace, const std::string& process, const CpuTime& time, RowTable& rows) {
  const std::vector<Launch>& launches = time.launches;
  LongestKernels works(time.calls);
  Device device;
  for (const TraceSlice& slice : trace.slices()) {
    if (slice.kind != SliceKind::kernel || trace.lanes()[slice.lane].process != process) continue;
    const Launch* const launch = find_launch(launches, slice.correlation);
    RowKey key{.name = slice.name};
    if (launch) key = {slice.name, trace.operands(launch->operands).shapes, launch->launcher, launch->part};
    device.segments.push_back({slice.start_ns, slice.start_ns + slice.duration_ns, rows.row(key),
                               launch ? launch->place : std::uint16_t{0}, launch ? launch->at_ns : 0});
    if (launch && launch->operands != 0) works.offer(device.segments, *launch);
  }
  device.steps = steps_of_gpu(device.segments, marked_steps(trace, SliceKind::step));
  if (device.steps.empty()) device.steps = marked_steps(trace, SliceKind::device_step, &process);
  if (device.steps.empty()) device.steps = marked_steps(trace, SliceKind::step);
  return device;
}

// The GPUs of the trace; empty if there is none.
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

// The number in "device 1"; -1: it isn't a number.
int device_number(const std::string& gpu_name) {
  constexpr std::string_view word = "device ";
  const std::string number = gpu_name.starts_with(word) ? gpu_name.substr(word.size()) : "";
  return !number.empty() && number.size() < 6 && number.find_first_not_of("0123456789") == std::string::npos
             ? std::atoi(number.c_str())
             : -1;
}

// Packs the chosen ones of one rank's steps. `windows` are as many as the steps.
void keep_steps(TracedProcess& process, const Trace& trace, const std::vector<Launch>& launches,
                const std::vector<TracedStep>& steps, const std::vector<StepWindow>& windows) {
  constexpr std::int64_t most = 3 * StepSlices::most;  // of all ranks of a process
  std::int64_t kept = 0;
  for (const KeptStep& each : process.kept) kept += each.slices;
  for (const std::size_t i : steps_to_keep(steps)) {
    if (kept >= most) return;
    StepSlices slices = slices_of(trace, launches, windows[i]);
    const int device = windows[i].gpu ? device_number(*windows[i].gpu) : -1;
    slices.memory = memory_of(trace, windows[i].cpu, device);
    for (MemoryPoint& point : slices.memory) point.at_ns += windows[i].cpu.start_ns - windows[i].device.start_ns;
    process.kept.push_back(pack(slices));
    kept += process.kept.back().slices;
  }
}

TracedProcess attribute_cpu(const Trace& trace) {
  TracedProcess process;
  TraceProfile& profile = process.profile;
  profile.ranks = 1;
  RowTable rows(trace);
  const Places places = places_of(trace);
  PlaceTimes place_times(places.places);
  std::vector<StepSpan> steps = marked_steps(trace, SliceKind::step);
  profile.has_steps = !steps.empty();
  if (steps.empty()) steps.push_back({.start_ns = INT64_MIN / 2, .end_ns = INT64_MAX / 2});
  CpuTime time = cpu_time(trace, places, steps, &rows);
  if (time.segments.empty()) throw TraceError("holds no operator and no kernel");
  if (time.cut * 100 > static_cast<std::int64_t>(trace.slices().size()) && time.cut > 10)
    throw TraceError("has clocks that disagree: " + grouped(time.cut) +
                     " of its slices end after the slices around them");
  if (!profile.has_steps) steps = whole(time.segments);
  profile.slices = time.operations;
  profile.steps = distribute(time.segments, steps, rows, place_times, false);
  std::vector<StepWindow> windows;
  for (std::size_t i = 0; i < profile.steps.size(); ++i) {
    profile.steps[i].rank = std::max(trace.rank, 0);
    windows.push_back({.rank = profile.steps[i].rank, .device = steps[i], .cpu = steps[i]});
  }
  add_operators(profile, rows);
  process.anatomy = place_times.anatomy(static_cast<double>(std::max<std::size_t>(profile.steps.size(), 1)));
  keep_steps(process, trace, time.launches, profile.steps, windows);
  return process;
}

// The CPU's span for a GPU's step: the step of the same number, else the same time.
StepSpan cpu_span(const std::vector<StepSpan>& cpu_steps, const StepSpan& step) {
  const auto found = std::find_if(cpu_steps.begin(), cpu_steps.end(),
                                  [&](const StepSpan& each) { return each.number == step.number; });
  return found != cpu_steps.end() ? *found : step;
}

// One GPU's steps, as those of rank `number`. Returns how many kernels are outside them.
std::int64_t add_gpu(TracedProcess& process, const Trace& trace, const std::string& gpu_name, int number,
                     const CpuTime& time, RowTable& rows, PlaceTimes& places) {
  TraceProfile& profile = process.profile;
  Device device = gpu(trace, gpu_name, time, rows);
  profile.has_steps = !device.steps.empty();
  if (device.steps.empty()) device.steps = whole(device.segments);
  std::int64_t outside = 0;
  for (const Segment& each : device.segments) {
    const bool counts = step_at(device.steps, each.start_ns) != nullptr;
    rows.rows()[each.row].calls += counts;
    if (counts) rows.rows()[each.row].work += trace.operands(each.operands).work;
    (counts ? profile.slices : outside) += 1;
  }
  std::vector<TracedStep> steps = distribute(device.segments, device.steps, rows, places, true);
  const std::vector<StepSpan> cpu_steps = marked_steps(trace, SliceKind::step);
  std::vector<StepWindow> windows;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].rank = number;
    windows.push_back(
        {.rank = number, .device = device.steps[i], .cpu = cpu_span(cpu_steps, device.steps[i]), .gpu = &gpu_name});
  }
  keep_steps(process, trace, time.launches, steps, windows);
  profile.steps.insert(profile.steps.end(), steps.begin(), steps.end());
  return outside;
}

TracedProcess attribute_gpus(const Trace& trace, const std::set<std::string>& gpus) {
  TracedProcess process;
  process.profile.on_gpu = true;
  process.profile.ranks = static_cast<int>(gpus.size());
  RowTable rows(trace);
  const Places places = places_of(trace);
  PlaceTimes place_times(places.places);
  const CpuTime time = cpu_time(trace, places, {}, nullptr);
  int number = gpus.size() == 1 ? std::max(trace.rank, 0) : 0;
  std::int64_t outside = 0;
  for (const std::string& gpu_name : gpus) {
    outside += add_gpu(process, trace, gpu_name, number++, time, rows, place_times);
    require_few_steps(process.profile.steps.size());
  }
  if (outside > 0)
    process.profile.notes.push_back(grouped(outside) + " kernels are outside the steps and were left out.");
  add_operators(process.profile, rows);
  process.anatomy = place_times.anatomy(static_cast<double>(std::max<std::size_t>(process.profile.steps.size(), 1)));
  return process;
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

TracedProcess attribute_all(const Trace& trace) {
  const std::set<std::string> gpus = gpus_of(trace);
  TracedProcess process = gpus.empty() ? attribute_cpu(trace) : attribute_gpus(trace, gpus);
  if (process.profile.steps.empty()) throw TraceError("holds no step with an operator in it");
  finish(process.profile);
  return process;
}

TraceProfile attribute(const Trace& trace) {
  return attribute_all(trace).profile;
}

TracedProcess join_ranks(std::vector<TracedProcess> ranks) {
  TracedProcess joined;
  std::vector<TraceProfile> profiles;
  std::vector<std::pair<Anatomy, double>> anatomies;
  for (TracedProcess& each : ranks) {
    anatomies.emplace_back(std::move(each.anatomy), static_cast<double>(each.profile.steps.size()));
    std::move(each.kept.begin(), each.kept.end(), std::back_inserter(joined.kept));
    profiles.push_back(std::move(each.profile));
  }
  joined.anatomy = mean_anatomy(anatomies);
  joined.profile = join_ranks(std::move(profiles));
  return joined;
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
      Work work{so_far.flops, sum.bytes};
      work += Work{row.time.flops, row.bytes} * weight;
      sum.time.flops = work.flops;
      sum.bytes = work.bytes;
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
