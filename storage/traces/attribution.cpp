// From a sorted trace to a profile: find GPUs and steps, place the slices (places.h), make segments, distribute the
// time (segments.h), keep a few steps whole. A GPU's step is bounded by its own kernels, not by the CPU's range, since
// the CPU runs ahead.
#include "storage/traces/attribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "storage/bounded_text.h"
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

// The kernels that one step launched: when they begin and end, on all streams and on the busiest.
struct LaunchedStep {
  const StepSpan* cpu = nullptr;
  std::int64_t first_ns = INT64_MAX, end_ns = INT64_MIN;
  std::int64_t busy_first_ns = INT64_MAX, busy_end_ns = INT64_MIN;
};

// The stream that computes most: neither copies nor communication, which may wait in a kernel.
std::uint16_t busiest_lane(const std::vector<Segment>& kernels, RowTable& rows) {
  std::map<std::uint16_t, std::int64_t> busy;
  for (const Segment& each : kernels)
    busy[each.lane] += rows.rows()[each.row].order == 0 ? each.end_ns - each.start_ns : 0;
  const auto most = std::ranges::max_element(busy, [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == busy.end() ? std::uint16_t{0} : most->first;
}

std::vector<LaunchedStep> launched_steps(const std::vector<Segment>& kernels, const std::vector<StepSpan>& cpu_steps,
                                         RowTable& rows) {
  const std::uint16_t busiest = busiest_lane(kernels, rows);
  std::map<std::int64_t, LaunchedStep> found;
  for (const Segment& kernel : kernels) {
    const StepSpan* const cpu = kernel.launched_ns != 0 ? step_at(cpu_steps, kernel.launched_ns) : nullptr;
    if (!cpu) continue;
    LaunchedStep& step = found[cpu->number];
    step.cpu = cpu;
    step.first_ns = std::min(step.first_ns, kernel.start_ns);
    step.end_ns = std::max(step.end_ns, kernel.end_ns);
    if (kernel.lane != busiest) continue;
    step.busy_first_ns = std::min(step.busy_first_ns, kernel.start_ns);
    step.busy_end_ns = std::max(step.busy_end_ns, kernel.end_ns);
  }
  std::vector<LaunchedStep> steps;
  for (const auto& [number, step] : found) steps.push_back(step);
  return steps;
}

bool follow(const StepSpan& before, const StepSpan& after) {
  return after.number == before.number + 1;
}

// A GPU works after it was asked to, so its step begins with the first kernel that the CPU's step launched, and lasts
// until the next one's begins. Where a stream runs ahead into the step before (it fetches data), the first kernel of
// the busiest stream counts. A step that none follows lasts until its work is done and as long as the CPU took for it,
// but for that no longer than the mean of the others.
std::vector<StepSpan> steps_of_gpu(const std::vector<Segment>& kernels, const std::vector<StepSpan>& cpu_steps,
                                   RowTable& rows) {
  const std::vector<LaunchedStep> launched = launched_steps(kernels, cpu_steps, rows);
  bool runs_ahead = false;
  for (std::size_t i = 1; i < launched.size(); ++i)
    runs_ahead = runs_ahead || launched[i].first_ns < launched[i - 1].busy_end_ns;
  std::vector<StepSpan> steps;
  for (const LaunchedStep& each : launched) {
    const bool by_busiest = runs_ahead && each.busy_first_ns != INT64_MAX;
    steps.push_back({each.cpu->number, by_busiest ? each.busy_first_ns : each.first_ns, each.end_ns});
  }
  double sum = 0, whole = 0;
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    if (!follow(steps[i], steps[i + 1]) || steps[i + 1].start_ns <= steps[i].start_ns) continue;
    steps[i].end_ns = steps[i + 1].start_ns;
    sum += static_cast<double>(steps[i].end_ns - steps[i].start_ns);
    ++whole;
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i + 1 < steps.size() && follow(steps[i], steps[i + 1])) continue;
    const std::int64_t on_cpu = launched[i].cpu->end_ns - launched[i].cpu->start_ns;
    const std::int64_t until = whole > 0 ? steps[i].start_ns + std::min<std::int64_t>(on_cpu, std::llround(sum / whole))
                                         : launched[i].cpu->end_ns;
    steps[i].end_ns = std::max(steps[i].end_ns, until);
  }
  return in_order(std::move(steps));
}

// The moments at which a kernel of this trace can run: not before the CPU's first slice, nor long behind its last.
struct PossibleTimes {
  std::int64_t from_ns = INT64_MIN, to_ns = INT64_MAX;
  bool hold(const TraceSlice& slice) const {
    return slice.start_ns >= from_ns && slice.start_ns <= to_ns && slice.duration_ns <= to_ns - slice.start_ns;
  }
};

PossibleTimes possible_times(const Trace& trace) {
  constexpr std::int64_t second = 1'000'000'000, longest = std::int64_t{1} << 60;
  std::int64_t first = INT64_MAX, last = INT64_MIN;
  for (const TraceSlice& slice : trace.slices()) {
    const bool is_of_cpu = slice.kind == SliceKind::operation || slice.kind == SliceKind::launch ||
                           slice.kind == SliceKind::step || slice.kind == SliceKind::module;
    if (!is_of_cpu || slice.start_ns <= 0) continue;  // 0 is a clock that wasn't read
    first = std::min(first, slice.start_ns);
    last = std::max(last, slice.start_ns + slice.duration_ns);
  }
  if (first > last) return {};
  return {first - second, last + std::min(last - first, longest) + 60 * second};
}

// Kernels that a trace places where they can't have run.
struct StrayKernels {
  std::int64_t count = 0;
  std::set<std::string> names;

  void add(const std::string& name) {
    ++count;
    if (names.size() < 3) names.insert(bounded(name, 100));
  }
  std::string text() const {
    return fmt::format(
        "{} left out, since the trace places them where nothing can have run, long before or behind their launch: "
        "{}{}.",
        plural(count, "kernel was", "kernels were"), fmt::join(names, ", "), std::ssize(names) < count ? ", ..." : "");
  }
};

// The work of one device: of the GPU of this name, or of the CPU's threads.
struct Device {
  std::vector<Segment> segments;
  std::vector<StepSpan> steps;
  std::int64_t slices = 0;
};

// Finds the kernels that do an operator's work: of those that one call launched, the longest. The others prepare it, or
// add up. A copy does no product's FLOPs, however long it is.
class LongestKernels {
 public:
  LongestKernels(const Trace& trace, RowTable& rows, std::uint32_t calls)
      : trace_(trace), rows_(rows), longest_(std::size_t{calls} + 1, none) {}

  // The last of the segments.
  void offer(std::vector<Segment>& segments, const Launch& launch) {
    const bool has_flops = !is_missing(trace_.operands(launch.operands).work.flops);
    const auto rank = [&](std::size_t i) {
      return std::pair(has_flops && multiplies(rows_.rows()[segments[i].row].kind),
                       segments[i].end_ns - segments[i].start_ns);
    };
    const std::size_t last = segments.size() - 1;
    std::uint32_t& longest = longest_[launch.call];
    if (longest != none && rank(longest) >= rank(last)) return;
    if (longest != none) segments[longest].operands = 0;
    longest = static_cast<std::uint32_t>(last);
    segments[last].operands = launch.operands;
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  static bool multiplies(OperatorKind kind) {
    return kind == OperatorKind::products || kind == OperatorKind::attention || kind == OperatorKind::convolution;
  }
  const Trace& trace_;
  RowTable& rows_;
  std::vector<std::uint32_t> longest_;  // a place among the segments, by call
};

Device gpu(const Trace& trace, const std::string& process, const CpuTime& time, RowTable& rows, StrayKernels& strays) {
  const std::vector<Launch>& launches = time.launches;
  LongestKernels works(trace, rows, time.calls);
  const PossibleTimes possible = possible_times(trace);
  Device device;
  for (const TraceSlice& slice : trace.slices()) {
    if (slice.kind != SliceKind::kernel || trace.lanes()[slice.lane].process != process) continue;
    if (!possible.hold(slice)) {
      strays.add(trace.text(slice.name));
      continue;
    }
    const Launch* const launch = find_launch(launches, slice.correlation);
    RowKey key{.name = slice.name};
    if (launch) key = {slice.name, trace.operands(launch->operands).shapes, launch->launcher, launch->part};
    device.segments.push_back({.start_ns = slice.start_ns,
                               .end_ns = slice.start_ns + slice.duration_ns,
                               .row = rows.row(key),
                               .place = launch ? launch->place : std::uint16_t{0},
                               .launched_ns = launch ? launch->at_ns : 0,
                               .lane = slice.lane});
    if (launch && launch->operands != 0) works.offer(device.segments, *launch);
  }
  device.steps = marked_steps(trace, SliceKind::device_window, &process);
  if (device.steps.empty()) device.steps = steps_of_gpu(device.segments, marked_steps(trace, SliceKind::step), rows);
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
  std::ranges::stable_sort(profile.operators, [](const TracedOperator& a, const TracedOperator& b) {
    return a.time.self_ms > b.time.self_ms;
  });
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
void keep_steps(TracedProcess& process, const Trace& trace, const Places& places, const LaunchedWork& work,
                const std::vector<TracedStep>& steps, const std::vector<StepWindow>& windows) {
  constexpr std::int64_t most = 3 * StepSlices::most;  // of all ranks of a process
  std::int64_t kept = 0;
  for (const KeptStep& each : process.kept) kept += each.slices;
  for (const std::size_t i : steps_to_keep(steps)) {
    if (kept >= most) return;
    StepSlices slices = slices_of(trace, places, work, windows[i]);
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
  profile.calls = time.operations;
  profile.steps = distribute(time.segments, steps, rows, place_times, false);
  std::vector<StepWindow> windows;
  for (std::size_t i = 0; i < profile.steps.size(); ++i) {
    profile.steps[i].rank = std::max(trace.rank, 0);
    windows.push_back({.rank = profile.steps[i].rank, .device = steps[i], .cpu = steps[i]});
  }
  add_operators(profile, rows);
  process.anatomy = place_times.anatomy(static_cast<double>(std::max<std::size_t>(profile.steps.size(), 1)));
  keep_steps(process, trace, places, {time.launches, {}}, profile.steps, windows);
  return process;
}

// The CPU's span for a GPU's step: the step of the same number, else the same time.
StepSpan cpu_span(const std::vector<StepSpan>& cpu_steps, const StepSpan& step) {
  const auto found = std::ranges::find(cpu_steps, step.number, &StepSpan::number);
  return found != cpu_steps.end() ? *found : step;
}

// One GPU's steps, as those of rank `number`. Returns how many kernels are outside them.
std::int64_t add_gpu(TracedProcess& process, const Trace& trace, const std::string& gpu_name, int number,
                     const Places& places, const CpuTime& time, RowTable& rows, PlaceTimes& place_times) {
  TraceProfile& profile = process.profile;
  StrayKernels strays;
  Device device = gpu(trace, gpu_name, time, rows, strays);
  if (strays.count > 0) profile.notes.push_back(strays.text());
  if (device.segments.empty()) return 0;  // only stray kernels, which the note names
  profile.has_steps = !device.steps.empty();
  if (device.steps.empty()) device.steps = whole(device.segments);
  std::int64_t outside = 0;
  for (const Segment& each : device.segments) {
    const bool counts = step_at(device.steps, each.start_ns) != nullptr;
    rows.rows()[each.row].calls += counts;
    if (counts) rows.rows()[each.row].work += trace.operands(each.operands).work;
    (counts ? profile.calls : outside) += 1;
  }
  std::vector<TracedStep> steps = distribute(device.segments, device.steps, rows, place_times, true);
  const std::vector<StepSpan> cpu_steps = marked_steps(trace, SliceKind::step);
  std::vector<StepWindow> windows;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].rank = number;
    windows.push_back(
        {.rank = number, .device = device.steps[i], .cpu = cpu_span(cpu_steps, device.steps[i]), .gpu = &gpu_name});
  }
  keep_steps(process, trace, places, {time.launches, device.segments}, steps, windows);
  profile.steps.insert(profile.steps.end(), steps.begin(), steps.end());
  return outside;
}

void note_overlaps(TraceProfile& profile, double overlapped_ms) {
  double ms = 0;
  for (const TracedStep& step : profile.steps) ms += step.dt_ms;
  if (overlapped_ms > 0.001 * ms)
    profile.notes.push_back("Kernels of one stream overlap for " + milliseconds_text(overlapped_ms) +
                            "; this time counts as the later kernel's.");
}

TracedProcess attribute_gpus(const Trace& trace, const std::set<std::string>& gpus) {
  TracedProcess process;
  process.profile.on_gpu = true;
  process.profile.ranks = static_cast<int>(gpus.size());
  RowTable rows(trace);
  const Places places = places_of(trace);
  PlaceTimes place_times(places.places);
  const CpuTime time = cpu_time(trace, places, {}, nullptr);
  int number = gpus.size() == 1 ? std::max(trace.rank, 0) : trace.first_gpu;
  std::int64_t outside = 0;
  for (const std::string& gpu_name : gpus) {
    outside += add_gpu(process, trace, gpu_name, number++, places, time, rows, place_times);
    require_few_steps(process.profile.steps.size());
  }
  if (process.profile.steps.empty()) throw TraceError("holds only kernels at impossible times");
  if (outside > 0)
    process.profile.notes.push_back(grouped(outside) + " kernels are outside the steps and were left out.");
  note_overlaps(process.profile, rows.overlapped_ns / 1e6);
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

StepSpread step_spread(const TraceProfile& profile) {
  struct Sums {
    double steps = 0, ms = 0, squares = 0;
  };
  std::map<int, Sums> ranks;
  for (const TracedStep& step : profile.steps) {
    Sums& sums = ranks[step.rank];
    ++sums.steps;
    sums.ms += step.dt_ms;
    sums.squares += step.dt_ms * step.dt_ms;
  }
  if (ranks.empty()) return {};
  StepSpread spread{.steps = static_cast<int>(profile.steps.size() / ranks.size()), .sd_ms = 0};
  for (const auto& [rank, sums] : ranks) {
    if (sums.steps < 2) return {.steps = spread.steps};
    spread.sd_ms += std::sqrt(std::max(sums.squares - sums.ms * sums.ms / sums.steps, 0.0) / (sums.steps - 1)) /
                    static_cast<double>(ranks.size());
  }
  return spread;
}

bool is_followed(const std::vector<TracedStep>& steps, std::size_t i) {
  return i + 1 < steps.size() && steps[i + 1].rank == steps[i].rank && steps[i + 1].step == steps[i].step + 1;
}

TracedProcess attribute_all(const Trace& trace) {
  const std::set<std::string> gpus = gpus_of(trace);
  TracedProcess process = gpus.empty() ? attribute_cpu(trace) : attribute_gpus(trace, gpus);
  process.profile.notes.insert(process.profile.notes.begin(), trace.notes.begin(), trace.notes.end());
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
  const bool knows_sd = std::ranges::all_of(ranks, [](const TraceProfile& each) { return each.steps.size() >= 2; });
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  std::map<Key, TracedOperator> sums;
  for (TraceProfile& each : ranks) {
    if (each.on_gpu != joined.on_gpu) throw TraceError("is of a CPU only, but another rank's trace has a GPU");
    joined.has_steps = joined.has_steps && each.has_steps;
    joined.ranks += each.ranks;
    joined.calls += each.calls;
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
      if (knows_sd) sum.sd_ms = (is_missing(sum.sd_ms) ? 0 : sum.sd_ms) + row.sd_ms * weight;
    }
    joined.steps.insert(joined.steps.end(), each.steps.begin(), each.steps.end());
    joined.notes.insert(joined.notes.end(), each.notes.begin(), each.notes.end());
  }
  for (auto& [key, sum] : sums) joined.operators.push_back(std::move(sum));
  std::ranges::sort(joined.notes);
  joined.notes.erase(std::unique(joined.notes.begin(), joined.notes.end()), joined.notes.end());
  std::ranges::stable_sort(joined.operators, [](const TracedOperator& a, const TracedOperator& b) {
    return a.time.self_ms > b.time.self_ms;
  });
  return joined;
}

}  // namespace stepladder
